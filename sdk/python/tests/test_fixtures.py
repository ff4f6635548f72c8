"""The wire fixtures that all libraries share (sdk/fixtures), in both flavours."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

import pawl
from fixtures import OPERATIONS, arguments, as_json, assert_contains, cases
from pawl import errors
from pawl._sse import SseParser
from pawl._wire import Request, key_header
from script import FLAVOURS, Clock, Script, call, client_for
from server import ROOT

START = {"op": "startRun", "args": {"workflow_id": "w"}}
flavours = pytest.mark.parametrize("flavour", FLAVOURS)


class Captured(BaseException):
    """Ends a call once its request is known."""


def check_request(request: Request, wanted: dict[str, Any]) -> None:
    assert (request.method, request.path) == (wanted["method"], wanted["path"])
    assert dict(request.query) == wanted.get("query", {})
    headers = {name.lower(): value for name, value in request.headers.items()}
    for name, value in wanted.get("headers", {}).items():
        assert headers.get(name) == value, name
    content = request.content()
    assert ("body" in wanted) == (content is not None)
    if content is not None:
        assert json.loads(content) == wanted["body"]


def use_keys(client: Any, keys: list[str]) -> None:
    left = list(keys)
    client._settings.new_key = lambda: left.pop(0)


@flavours
@pytest.mark.parametrize("case", cases("requests.json"))
def test_request(case: dict[str, Any], flavour: str) -> None:
    def answer(request: Request) -> Any:
        raise Captured

    script = Script(answer, Clock())
    client = client_for(flavour, case.get("client", {"url": "http://127.0.0.1:7295"}), script)
    use_keys(client, case.get("new_keys", []))
    method, args, kwargs = arguments(case["call"])
    with pytest.raises(Captured):
        call(client, method, args, kwargs)
    check_request(script.sent[0], case["request"])


def test_every_operation_of_the_api_has_a_method_and_a_case() -> None:
    """Left out: the second form of a start, downloads, pages that are not JSON, and what people see in a browser."""
    left_out = {"startRunFlat", "backup", "exportAudit", "metrics", "openapi", "index", "streamEvents"}
    left_out |= {"getMe", "getSignIn", "createSession", "deleteSession", "getStats"}
    left_out |= {"getCluster", "getAdmission", "listEntityInbox"}
    paths = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())["paths"]
    operations = {verb["operationId"] for path in paths.values() for name, verb in path.items() if name != "parameters"}
    assert operations - left_out == set(OPERATIONS) - {"watchRun", "watchEvents"}
    covered = {case.values[0]["call"]["op"] for case in cases("requests.json")}
    assert operations - left_out == covered


@flavours
@pytest.mark.parametrize("case", cases("answers.json"))
def test_answer(case: dict[str, Any], flavour: str) -> None:
    client = client_for(flavour, {}, Script(lambda request: case["answer"], Clock()))
    client._settings.retry = pawl.Retry(max_attempts=1)
    method, args, kwargs = arguments(case["call"])
    if "result" in case:
        assert_contains(as_json(call(client, method, args, kwargs)), case["result"])
        return
    with pytest.raises(errors.ApiError) as raised:
        call(client, method, args, kwargs)
    check_error(raised.value, case["error"])


@flavours
def test_a_list_goes_on_page_after_page(flavour: str) -> None:
    """Also over a page without items, which does not mean the end."""
    found = [{"items": [{"id": "a"}], "next_cursor": "2"}, {"items": [], "next_cursor": "3"}]
    left = [*found, {"items": [{"id": "b"}], "next_cursor": None}]
    script = Script(lambda request: {"status": 200, "body": left.pop(0)}, Clock())
    client = client_for(flavour, {}, script)
    assert [run.id for run in call(client, "runs.list", [], {"status": "failed"})] == ["a", "b"]
    assert [dict(request.query) for request in script.sent] == [
        {"status": "failed"},
        {"status": "failed", "cursor": "2"},
        {"status": "failed", "cursor": "3"},
    ]


def check_error(error: Exception, wanted: dict[str, Any]) -> None:
    assert type(error).__name__ == wanted["class"]
    for name, attribute in (("code", "code"), ("status", "status"), ("retryable", "retryable")):
        if name in wanted:
            assert getattr(error, attribute) == wanted[name]
    if "retry_after_s" in wanted:
        assert getattr(error, "retry_after", None) == wanted["retry_after_s"]
    assert_contains(getattr(error, "details", {}), wanted.get("details", {}))


@pytest.mark.parametrize("case", cases("errors.json"))
def test_error_class(case: dict[str, Any]) -> None:
    error = errors.error_for(case["status"], {"code": case["code"]})
    assert type(error).__name__ == case["class"]
    assert error.code == case["code"]


@pytest.mark.parametrize("case", cases("keys.json"))
def test_key(case: dict[str, Any]) -> None:
    if case.get("refused"):
        with pytest.raises(ValueError, match="idempotency key"):
            key_header(case["key"])
    else:
        assert key_header(case["key"]) == case.get("header")


@flavours
@pytest.mark.parametrize("case", cases("retries.json"))
def test_retries(case: dict[str, Any], flavour: str) -> None:
    clock, left, numbers = Clock(), list(case["exchanges"]), list(case.get("random", []))
    script = Script(lambda request: left.pop(0), clock)
    client = client_for(flavour, {}, script)
    settings = client._settings
    settings.retry, settings.budget = policy(case.get("policy", {})), budget(case.get("budget", {}))
    settings.random = lambda: numbers.pop(0)
    use_keys(client, ["k"])
    method, args, kwargs = arguments(case.get("call", START))
    wanted = case["outcome"].get("error")
    if wanted:
        with pytest.raises(errors.PawlError) as raised:
            call(client, method, args, kwargs)
        check_error(raised.value, wanted)
    else:
        call(client, method, args, kwargs)
    assert clock.pauses_ms == pytest.approx(case["pauses_ms"])
    assert not left and not numbers
    assert {request.headers["Idempotency-Key"] for request in script.sent} == {"k"}
    if "tokens_after" in case:
        assert settings.budget.tokens == pytest.approx(case["tokens_after"], abs=1e-9)


def policy(wire: dict[str, Any]) -> pawl.Retry:
    deadline = wire.get("deadline_ms", 60000)
    return pawl.Retry(
        jitter=wire.get("jitter", "full"),
        base=wire.get("base_ms", 200) / 1000,
        maximum=wire.get("max_ms", 10000) / 1000,
        multiplier=wire.get("multiplier", 2),
        max_attempts=wire.get("max_attempts"),
        deadline=None if deadline is None else deadline / 1000,
    )


def budget(wire: dict[str, Any]) -> pawl.Budget:
    return pawl.Budget(wire.get("tokens", 10), wire.get("max", 10), wire.get("per_success", 0.1))


@pytest.mark.parametrize("case", cases("sse.json"))
def test_sse(case: dict[str, Any]) -> None:
    parser = SseParser()
    events = [event for chunk in case["chunks"] for event in parser.feed(chunk.encode())]
    assert [{"id": e.id, "event": e.event, "data": e.data} for e in events] == case["events"]
    assert parser.last_id == case["last_id"]


@pytest.mark.parametrize("case", cases("sse.json"))
def test_sse_byte_by_byte(case: dict[str, Any]) -> None:
    parser = SseParser()
    raw = "".join(case["chunks"]).encode()
    events = [event for i in range(len(raw)) for event in parser.feed(raw[i : i + 1])]
    assert [{"id": e.id, "event": e.event, "data": e.data} for e in events] == case["events"]


@flavours
@pytest.mark.parametrize("case", cases("watch.json"))
def test_watch(case: dict[str, Any], flavour: str) -> None:
    left = list(case["connections"])

    def answer(request: Request) -> Any:
        connection = left.pop(0)
        check_request(request, connection["request"])
        plain = request.headers["Accept"] == "application/json"
        return connection["answer"] if plain else connection

    client = client_for(flavour, {}, Script(answer, Clock()))
    method, args, kwargs = arguments(case["call"])
    wanted = case.get("error")
    if wanted:
        with pytest.raises(errors.ApiError) as raised:
            call(client, method, args, kwargs)
        check_error(raised.value, wanted)
    else:
        events = call(client, method, args, kwargs, take=case.get("take"))
        assert_contains(as_json(events), case["events"])
    assert not left


@pytest.mark.parametrize("case", cases("webhooks.json"))
def test_webhook(case: dict[str, Any]) -> None:
    def verify(body: bytes | str) -> dict[str, Any]:
        tolerance = case.get("tolerance_s", 300)
        return pawl.webhooks.verify(case["secret"], case["headers"], body, now=case["now_s"], tolerance=tolerance)

    for body in (case["body"], case["body"].encode()):
        if "event" in case:
            assert_contains(verify(body), case["event"])
        else:
            with pytest.raises(errors.WebhookInvalid) as raised:
                verify(body)
            assert raised.value.reason == case["invalid"]


@pytest.mark.parametrize("case", cases("definitions.json"))
def test_definition(case: dict[str, Any]) -> None:
    head = dict(case["workflow"])
    workflow = pawl.Workflow(head.pop("id"), **head)
    for step in case["steps"]:
        members = {name: built(value) for name, value in step.items()}
        build = getattr(workflow, members.pop("call"))
        build(**members)
    assert workflow.to_dict() == case["definition"]


def built(value: Any) -> Any:
    """A fixture's value with the library's own objects in it."""
    if isinstance(value, dict) and "$ref" in value:
        return pawl.Ref(value["$ref"])
    if isinstance(value, dict) and "$compensate" in value:
        return value["$compensate"]
    if isinstance(value, dict):
        return {name: built(item) for name, item in value.items()}
    return [built(item) for item in value] if isinstance(value, list) else value
