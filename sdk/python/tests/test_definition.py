"""References to values that exist only when a run does."""

from __future__ import annotations

import pytest

import pawl


def test_every_name_is_a_member() -> None:
    """Also the names of Python's own types, and of what the library calls its things."""
    order = pawl.Workflow("order")
    for name in ("expression", "items", "format", "path", "get", "_path"):
        assert str(getattr(order.input, name)) == "${input." + name + "}"


def test_a_member_that_is_no_word_is_quoted() -> None:
    order = pawl.Workflow("order")
    assert str(order.input['my "own" field']) == '${input["my \\"own\\" field"]}'
    assert str(order.input.end) == '${input["end"]}', "a word of Lua"
    assert str(order.input["two\nlines"]) == '${input["two\\nlines"]}'


def test_a_condition_is_an_expression() -> None:
    order = pawl.Workflow("order")
    order.task("ship", "ship", when=order.input.paid, for_each=order.input.lines)
    (step,) = order.to_dict()["steps"]
    assert (step["when"], step["for_each"]) == ("input.paid", "input.lines")


def test_elements_do_not_count_from_the_end() -> None:
    with pytest.raises(IndexError, match="count from 0"):
        pawl.Workflow("order").input.lines[-1]


def test_a_reference_cannot_be_iterated() -> None:
    with pytest.raises(TypeError, match="for_each"):
        list(pawl.Workflow("order").input.lines)


def test_a_step_has_a_name_of_its_own() -> None:
    order = pawl.Workflow("order")
    order.task("ship", "ship")
    with pytest.raises(ValueError, match='already has a step "ship"'):
        order.sleep("ship", duration_ms=1)
