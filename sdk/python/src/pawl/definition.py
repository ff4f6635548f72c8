"""Workflow definitions as code: the builder produces the JSON that the server stores.

The options have the names that docs/workflows.md gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

LUA_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\0": "\\0"})
LUA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LUA_WORDS = re.compile(
    "and|break|do|else|elseif|end|false|for|function|goto|if|in|local|nil|not|or|repeat|return|then|true|until|while"
)


class Ref:
    """A value that exists when the run does: the run's input, a step's output, the current item.

    Members and elements are taken as in Python; elements count from 0. In a text, or as a value anywhere in a
    definition, it becomes a template.

    >>> order = Workflow("order")
    >>> f"Refund {order.input.amount} for {order.input.lines[0].name}?"
    'Refund ${input.amount} for ${input.lines[1].name}?'
    """

    def __init__(self, path: str) -> None:
        self.__path = path

    def __getattr__(self, name: str) -> Ref:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, member: str | int) -> Ref:
        if isinstance(member, int):
            if member < 0:
                raise IndexError("Elements count from 0: a definition cannot count from the end")
            return Ref(f"{self.__path}[{member + 1}]")
        if LUA_NAME.fullmatch(member) and not LUA_WORDS.fullmatch(member):
            return Ref(f"{self.__path}.{member}")
        return Ref(f'{self.__path}["{member.translate(LUA_ESCAPES)}"]')

    def __iter__(self) -> Iterator[Ref]:
        raise TypeError("A reference has no elements yet: use for_each")

    def __str__(self) -> str:
        return "${" + self.__path + "}"

    def __repr__(self) -> str:
        return f"Ref({self.__path!r})"

    def __pawl__(self) -> str:
        return str(self)

    def __pawl_expression__(self) -> str:
        """The text for `when` and `for_each`, which are expressions and not templates. Like all that is not a member
        of the value, it has a name that no member can have."""
        return self.__path


class RetryRule(TypedDict, total=False):
    """When pawl tries a failed step again; see docs/workflows.md for the defaults.

    >>> RetryRule(max_attempts=5, backoff_ms=500, non_retryable=["CARD_DECLINED"])["max_attempts"]
    5
    """

    max_attempts: int
    backoff_ms: int
    multiplier: float
    max_backoff_ms: int
    jitter: Literal["none", "full", "equal", "decorrelated"]
    non_retryable: list[str]


class StepOptions(TypedDict, total=False):
    """What every step may have. `retry=5` is short for `retry={"max_attempts": 5}`.

    >>> StepOptions(when="input.amount > 100", on_error="continue")["on_error"]
    'continue'
    """

    needs: Sequence[str | Step]
    when: str | Ref
    for_each: str | Ref | Sequence[Any]
    max_parallel: int
    retry: int | RetryRule
    timeout_ms: int
    on_error: str | Step


class UndoOptions(StepOptions, total=False):
    """For steps that can be undone. `compensate="cards.refund"` is short for `{"handler": "cards.refund"}`.

    >>> UndoOptions(compensate="cards.refund")["compensate"]
    'cards.refund'
    """

    compensate: str | Mapping[str, Any]


class WorkflowOptions(TypedDict, total=False):
    """What a whole workflow may have.

    >>> WorkflowOptions(timeout_s=3600, concurrency={"key": "input.customer", "limit": 1})["timeout_s"]
    3600
    """

    description: str
    input_schema: Mapping[str, Any]
    timeout_s: int
    concurrency: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    signals: Mapping[str, Any]


class QuestionOptions(TypedDict, total=False):
    """What `ctx.approval` may have besides its prompt and content.

    >>> QuestionOptions(approvers={"count": 2}, expires_s=86400)["expires_s"]
    86400
    """

    approvers: Mapping[str, Any]
    expires_s: int
    remind_every_s: int
    escalation: Mapping[str, Any]


class Step:
    """A step of a workflow that is being built; `output` and `error` refer to what it will give.

    >>> charge = Workflow("order").task("charge", "cards.charge")
    >>> str(charge.output.id)
    '${steps.charge.output.id}'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        steps = Ref("steps")
        #: What the step will return.
        self.output = steps[name].output
        #: Its error, if it fails and the run continues.
        self.error = steps[name].error
        #: How it ended: "succeeded", "skipped" and so on.
        self.status = steps[name].status


class Workflow:
    """A workflow definition. Steps run in the order they are added, unless one of them has `needs`.

    >>> order = Workflow("order", timeout_s=3600)
    >>> charge = order.task("charge", "cards.charge", retry=5, compensate="cards.refund")
    >>> order.approval("ok", f"Ship order {order.input.id}?", when="input.amount > 100").name
    'ok'
    >>> order.task("ship", "parcels.ship", input={"charge": charge.output.id}).name
    'ship'
    >>> [step["name"] for step in order.to_dict()["steps"]]
    ['charge', 'ok', 'ship']
    """

    def __init__(
        self,
        id: str,
        *,
        queue: str | None = None,
        **options: Unpack[WorkflowOptions],
    ) -> None:
        self.id = id
        #: The queue of tasks that name no other.
        self.queue = queue
        self._options = options
        self._steps: list[dict[str, Any]] = []
        #: The run's input.
        self.input = Ref("input")
        #: The run's state.
        self.state = Ref("state")
        #: The current element, in a step with `for_each`.
        self.item = Ref("item")
        #: The run: `id`, `created_by`, `labels` and so on.
        self.run = Ref("run")

    def task(
        self,
        name: str,
        handler: str,
        *,
        queue: str | None = None,
        input: Any = None,
        requires_approval: bool | Mapping[str, Any] | None = None,
        **options: Unpack[UndoOptions],
    ) -> Step:
        """A task for a worker. `requires_approval` asks a person first.

        >>> Workflow("pay").task("charge", "cards.charge", queue="payments", retry=3).name
        'charge'
        """
        return self._add(
            name,
            "task",
            options,
            handler=handler,
            queue=queue or self.queue,
            input=input,
            requires_approval=requires_approval,
        )

    def http(
        self,
        name: str,
        method: str,
        url: str | Ref,
        *,
        headers: Mapping[str, Any] | None = None,
        body: Any = None,
        **options: Unpack[UndoOptions],
    ) -> Step:
        """A call that the server makes, with the job's id as its idempotency key.

        >>> Workflow("tell").http("post", "POST", "https://example.com/orders", body={"id": 1}).name
        'post'
        """
        request = {"method": method, "url": url, "headers": headers, "body": body}
        return self._add(name, "http", options, request=_given(request))

    def approval(
        self,
        name: str,
        prompt: str | Ref,
        *,
        content: Any = None,
        approvers: Mapping[str, Any] | None = None,
        expires_s: int | None = None,
        on_expire: Literal["reject", "approve", "fail"] | None = None,
        remind_every_s: int | None = None,
        escalation: Mapping[str, Any] | None = None,
        **options: Unpack[StepOptions],
    ) -> Step:
        """Ask a person before the run continues.

        >>> Workflow("pay").approval("ok", "Pay?", approvers={"count": 2}, expires_s=86400).name
        'ok'
        """
        return self._add(
            name,
            "approval",
            options,
            prompt=prompt,
            content=content,
            approvers=approvers,
            expires_s=expires_s,
            on_expire=on_expire,
            remind_every_s=remind_every_s,
            escalation=escalation,
        )

    def sleep(
        self,
        name: str,
        *,
        duration_ms: int | None = None,
        until: str | Ref | None = None,
        **options: Unpack[StepOptions],
    ) -> Step:
        """Wait for a time. It survives restarts.

        >>> Workflow("later").sleep("a-day", duration_ms=86_400_000).name
        'a-day'
        """
        return self._add(name, "sleep", options, duration_ms=duration_ms, until=until)

    def wait_signal(
        self,
        name: str,
        signal: str | Sequence[str],
        *,
        wait_for: Literal["first", "all"] | None = None,
        **options: Unpack[StepOptions],
    ) -> Step:
        """Wait for a signal, or for the first (or all) of several.

        >>> Workflow("parcel").wait_signal("arrival", ["delivered", "lost"], timeout_ms=86_400_000).name
        'arrival'
        """
        return self._add(name, "wait_signal", options, signal=signal, wait_for=wait_for)

    def transform(self, name: str, output: Any, **options: Unpack[StepOptions]) -> Step:
        """Compute a value from templates; nothing else runs.

        >>> w = Workflow("hello")
        >>> w.transform("text", {"text": f"Hello, {w.input.name}!"}).name
        'text'
        """
        return self._add(name, "transform", options, output=output)

    def emit(self, name: str, event: str, payload: Any = None, **options: Unpack[StepOptions]) -> Step:
        """Publish an event of your own.

        >>> Workflow("announce").emit("say", "order.large", {"id": 7}).name
        'say'
        """
        return self._add(name, "emit", options, event=event, payload=payload)

    def workflow(
        self,
        name: str,
        workflow_id: str,
        *,
        version: int | None = None,
        input: Any = None,
        **options: Unpack[UndoOptions],
    ) -> Step:
        """Run another workflow as a step of this one.

        >>> Workflow("two").workflow("one", "greet", input={"name": "Ada"}).name
        'one'
        """
        return self._add(name, "workflow", options, workflow_id=workflow_id, version=version, input=input)

    def to_dict(self) -> dict[str, Any]:
        """The definition as JSON.

        >>> Workflow("empty").to_dict()
        {'id': 'empty', 'steps': []}
        """
        wire: dict[str, Any] = _plain({"id": self.id, **_given(self._options), "steps": self._steps})
        return wire

    def _add(self, step_name: str, type: str, options: Mapping[str, Any], /, **members: Any) -> Step:
        if any(step["name"] == step_name for step in self._steps):
            raise ValueError(f'Workflow {self.id} already has a step "{step_name}"')
        short = {name: _long_form(name, value) for name, value in options.items()}
        self._steps.append({"name": step_name, "type": type, **_given(members), **_given(short)})
        return Step(step_name)


def _long_form(option: str, value: Any) -> Any:
    if option in ("when", "for_each") and isinstance(value, Ref):
        return value.__pawl_expression__()
    if option == "retry" and isinstance(value, int):
        return {"max_attempts": value}
    if option == "compensate" and isinstance(value, str):
        return {"handler": value}
    if option == "needs":
        return [step.name if isinstance(step, Step) else step for step in value]
    return value.name if isinstance(value, Step) else value


def _given(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _plain(value: Any) -> Any:
    """Only dicts, lists and scalars: references become templates."""
    if isinstance(value, Ref):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value
