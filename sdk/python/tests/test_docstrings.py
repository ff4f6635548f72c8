"""Every public thing has a docstring with an example, and every example does what it says, on a real server."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import pawl
from examples import namespace
from pawl import _groups, errors, webhooks
from server import Server


def public_things() -> Iterator[tuple[str, Any]]:
    """What `pawl` exports, its errors, webhooks and groups of operations. The generated models are data."""
    exported = [getattr(module, name) for module in (pawl, _groups) for name in module.__all__]
    own = [thing for module in (errors, webhooks) for thing in vars(module).values() if is_own(thing, module)]
    for thing in {id(thing): thing for thing in exported + own if not inspect.ismodule(thing)}.values():
        name = f"{thing.__module__}.{thing.__qualname__}"
        yield name, thing
        if inspect.isclass(thing):
            yield from methods(thing)


def is_own(thing: Any, module: Any) -> bool:
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return False
    return thing.__module__ == module.__name__ and not thing.__name__.startswith("_")


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Also those of private bases; an operation that two classes share comes once."""
    for base in kind.__mro__:
        for member, value in vars(base).items() if base.__module__.startswith("pawl") else ():
            method = inspect.isfunction(value) or isinstance(value, property | staticmethod) or hasattr(value, "steps")
            if method and not member.startswith("_"):
                yield f"{base.__module__}.{base.__qualname__}.{member}", value


THINGS = dict(public_things())


@pytest.fixture(scope="module")
def names(server: Server) -> Iterator[dict[str, Any]]:
    with namespace(server.url) as found:
        yield found


def test_everything_public_is_here() -> None:
    some = {"pawl.client._Api.start", "pawl.worker._Worker.task", "pawl._groups.runs.Runs.get", "pawl.webhooks.verify"}
    assert some <= set(THINGS)
    assert len(THINGS) > 150


@pytest.mark.parametrize("name", sorted(THINGS))
def test_example(name: str, names: dict[str, Any]) -> None:
    text = inspect.getdoc(THINGS[name]) or ""
    assert ">>>" in text, f"{name} has no example"
    new_ctx = names["new_async_ctx" if ".AsyncContext" in name else "new_ctx"]
    test = doctest.DocTestParser().get_doctest(text, {**names, "ctx": new_ctx()}, name, None, 0)
    report: list[str] = []
    options = doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS
    result = doctest.DocTestRunner(optionflags=options).run(test, out=report.append)
    assert result.failed == 0, "".join(report)
