"""What every answer of the contract has in common."""
import re

TRACE_ID = re.compile(r"[0-9a-f]{32}")
CODE = re.compile(r"[A-Z][A-Z0-9_]*")


def without_shards(found):
    """What several nodes answer as one server would say it: they add which shard something is in."""
    if isinstance(found, dict):
        return {name: without_shards(value) for name, value in found.items() if name not in ("shard", "heads")}
    if isinstance(found, list):
        return [without_shards(item) for item in found]
    return re.sub(r", shard \d+", "", found) if isinstance(found, str) else found


def assert_private(reply):
    """No cache may keep an answer, and no browser may take it for another type."""
    assert reply.header("Cache-Control") == "no-store" and reply.header("X-Content-Type-Options") == "nosniff", reply.headers


def assert_problem(reply, status, code=None, retryable=None):
    """The whole form of an error: problem+json, its members, and the status said twice."""
    assert reply.status == status, reply
    assert reply.header("Content-Type") == "application/problem+json", reply.headers
    assert_private(reply)
    problem = reply.json
    for name in ("type", "title", "detail", "code", "trace_id"):
        assert isinstance(problem[name], str) and problem[name], (name, problem)
    assert problem["status"] == status, problem
    assert isinstance(problem["retryable"], bool), problem
    assert CODE.fullmatch(problem["code"]), problem
    assert TRACE_ID.fullmatch(problem["trace_id"]), problem
    assert reply.header("X-Trace-Id") == problem["trace_id"], (reply.headers, problem)
    if status in (429, 503):
        assert int(reply.header("Retry-After")) >= 1, reply.headers
    if code is not None:
        assert problem["code"] == code, problem
    if retryable is not None:
        assert problem["retryable"] is retryable, problem
    return problem


def assert_alive(client):
    reply = client.get("/healthz")
    assert reply.status == 200 and reply.json["status"] == "ok", reply
