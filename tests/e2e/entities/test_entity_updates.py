"""Updates: asking an entity and waiting for what its handler says; the outcome stays, and whoever asks again gets the same."""
import threading

import pytest

import harness
from actions import complete, fail
from checks import assert_problem
from entities import Entity, define
from harness import wait_until
from inspect_store import assert_healthy


@pytest.fixture
def entity(api, tenant):
    def make(eid="e", **rules):
        define(api, tenant, **rules)
        return Entity(api, tenant, eid)
    return make


class Asking:
    """ask(…) in a thread of its own, which waits."""

    def __init__(self, e, *args, **kw):
        self.reply, self.error = None, None
        self.thread = threading.Thread(target=self._run, args=(e, args, {"wait_ms": 60_000, **kw}), daemon=True)
        self.thread.start()

    def _run(self, e, args, kw):
        try:
            self.reply = e.ask(*args, **kw)
        except OSError as error:  # the server was killed
            self.error = error

    def answered(self):
        self.thread.join(harness.PATIENCE_S + 60)
        assert not self.thread.is_alive(), "no answer"
        return self.reply


def outcome(reply):
    """What it says came of the update."""
    assert reply.status == 200, reply
    return {k: v for k, v in reply.json.items() if k in ("seq", "status", "result", "error")}


def waits(reply, duplicate):
    """It says that there is no outcome yet, and where that will be."""
    assert reply.status == 202 and (reply.json["status"], reply.json["duplicate"]) == ("waiting", duplicate) and not {"result", "error"} & set(reply.json), reply
    return reply.header("Location")


def test_the_answer_waits_for_the_result(entity):
    e = entity()
    asking = Asking(e, "k", {"points": 5})
    job = e.call()
    assert [(s["seq"], s["name"], s["payload"], s["update"]) for s in job["input"]["signals"]] == [(1, "take", {"points": 5}, True)]
    e.answer(job, state=1, results=[{"seq": 1, "result": {"left": 7}}])
    r = asking.answered()
    assert outcome(r) == {"seq": 1, "status": "completed", "result": {"left": 7}} and r.json["duplicate"] is False
    shown = e.api.get(e.path("/updates/1"), tenant=e.tenant).json
    assert shown["decided_at"] >= shown["at"] and {k: shown[k] for k in ("seq", "name", "status", "result")} == {"seq": 1, "name": "take", "status": "completed", "result": {"left": 7}}


def test_an_update_makes_the_entity_and_stands_in_one_row_with_signals(entity):
    e = entity()
    assert_problem(e.api.get(e.path(), tenant=e.tenant), 404, "ENTITY_NOT_FOUND")
    assert e.ask("k1").status == 202
    assert (e.send(), e.ask("k2").json["seq"], e.send(), e.see()["last_seq"]) == (2, 3, 4, 4)
    job = e.call()
    assert [(s["seq"], s.get("update")) for s in job["input"]["signals"]] == [(1, True), (2, None), (3, True), (4, None)]
    assert_problem(complete(e.api, e.tenant, job, output={"results": [{"seq": 2, "result": 1}]}), 422, "ENTITY_ANSWER_INVALID")
    e.answer(job, state=1, results=[{"seq": 3, "result": 3}, {"seq": 1, "error": {"code": "NO"}}])
    assert outcome(e.ask("k1")) == {"seq": 1, "status": "rejected", "error": {"code": "NO"}} and outcome(e.ask("k2")) == {"seq": 3, "status": "completed", "result": 3}


def test_who_does_not_wait_is_told_where_to_look(entity):
    e = entity()
    place = e.path("/updates/1")
    assert waits(e.ask("k", wait_ms=0), duplicate=False) == place
    shown = e.api.get(place, tenant=e.tenant).json
    assert (shown["status"], shown["decided_at"]) == ("waiting", None) and "result" not in shown and "error" not in shown
    assert waits(e.ask("k", wait_ms=1), duplicate=True) == place
    e.handle(state=1, results=[{"seq": 1, "result": [1]}])
    assert e.api.get(place, tenant=e.tenant).json["result"] == [1]
    assert outcome(e.ask("k", wait_ms=60_000)) == {"seq": 1, "status": "completed", "result": [1]} and e.see()["inbox"] == 0


@pytest.mark.parametrize("said,shown", [
    ({"result": {"left": 1}}, {"status": "completed", "result": {"left": 1}}), ({"result": None}, {"status": "completed", "result": None}),
    ({"error": {"code": "TOO_FEW", "message": "3 are left"}}, {"status": "rejected", "error": {"code": "TOO_FEW", "message": "3 are left"}}),
    (None, {"status": "completed", "result": None}),
])
def test_the_outcome_stays_through_kills_for_whoever_asks_again(said, shown):
    with harness.server() as s:
        define(s.client(), "t", rollover_events=3, keep_generations=0)
        e = Entity(s.client(), "t")
        asking = Asking(e, "k")
        job = e.call()
        s.kill()
        assert asking.answered() is None and asking.error is not None, "the waiter was cut off"
        s.start()
        e.api = s.client()
        waits(e.ask("k"), duplicate=True)
        e.answer(job, state=1, **({"results": [{"seq": 1, **said}]} if said else {}))
        expected = {"seq": 1, **shown}
        assert outcome(e.ask("k")) == expected
        s.kill()
        s.start()
        e.api = s.client()
        for n in range(5):
            e.send(dedup_key=f"o{n}"), e.handle(state=n)
        before = e.see()
        assert outcome(e.ask("k", wait_ms=60_000)) == expected and e.ask("k").json["duplicate"] is True
        assert e.see() == before and e.api.get(e.path("/updates/1"), tenant="t").json["status"] == shown["status"]
        assert_healthy(e.api)


def test_many_at_once_with_one_key_are_one_update_with_one_outcome(entity):
    e = entity()
    asking = [Asking(e, "k", 5) for _ in range(12)]
    job = e.call()
    e.answer(job, state=1, results=[{"seq": 1, "result": "once"}])
    replies = [a.answered() for a in asking]
    assert {str(outcome(r)) for r in replies} == {str({"seq": 1, "status": "completed", "result": "once"})}
    assert sorted(r.json["duplicate"] for r in replies) == [False] + [True] * 11
    e.no_call()
    assert e.see()["last_seq"] == 1


def test_a_key_of_another_request_is_refused(entity):
    e = entity()
    e.send("take", 1, dedup_key="signal"), e.ask("update", 1)
    before = e.see()
    for r in (e.ask("signal", 1), e.ask("update", 2), e.ask("update", 1, name="give"), e.signal("take", 2, dedup_key="update")):
        assert_problem(r, 422, "IDEMPOTENCY_KEY_REUSED")
    assert e.see() == before


def test_a_signal_with_the_key_and_the_content_of_an_update_is_its_duplicate(entity):
    e = entity()
    e.ask("k", 1)
    assert e.signal("take", 1, dedup_key="k").json == {"seq": 1, "duplicate": True, "generation": 1} and e.see()["last_seq"] == 1


def test_an_idempotency_key_replays_the_first_answer(entity):
    e = entity()
    assert e.ask("k", key="idem-1").header("Idempotent-Replayed") is None
    e.handle(state=1, results=[{"seq": 1, "result": "yes"}])
    again = e.ask("k", key="idem-1")
    assert again.header("Idempotent-Replayed") == "true" and again.json["seq"] == 1 and (again.status, again.json["status"]) in ((202, "waiting"), (200, "completed")), again
    assert_problem(e.ask("other", key="idem-1"), 422, "IDEMPOTENCY_KEY_REUSED")
    s = e.signal("add", 5, dedup_key="s")
    keyed = [e.api.post(e.path("/signals"), {"name": "add", "payload": 6}, tenant=e.tenant, key="idem-2") for _ in range(2)]
    assert [r.json["seq"] for r in keyed] == [s.json["seq"] + 1] * 2 and keyed[1].header("Idempotent-Replayed") == "true" and e.see()["last_seq"] == 3


def test_a_waiter_waits_for_the_next_attempt_but_not_for_what_is_deleted(entity):
    e = entity(retry={"backoff_ms": 1, "max_backoff_ms": 1})
    asking = Asking(e, "k")
    assert fail(e.api, e.tenant, e.call()).json["status"] == "retrying"
    assert e.call()["attempt"] == 2 and asking.thread.is_alive()
    e.delete()
    assert_problem(asking.answered(), 404, "ENTITY_NOT_FOUND")


def test_each_of_many_waits_for_its_own(entity):
    e = entity(max_batch=4)
    asking = [Asking(e, f"k{n}", n) for n in range(12)]
    wait_until(lambda: e.api.get(e.path(), tenant=e.tenant).status == 200, "the first has come")
    e.is_so("all have come", lambda shown: shown["last_seq"] == 12)
    while e.see()["inbox"]:
        job = e.call()
        e.answer(job, state=1, results=[{"seq": s["seq"], "result": s["payload"] * 10} for s in job["input"]["signals"]])
    assert [a.answered().json["result"] for a in asking] == [n * 10 for n in range(12)]


def test_an_update_in_a_generation_that_is_gone_is_still_known(entity):
    e = entity(rollover_events=3, keep_generations=0)
    e.ask("k"), e.handle(state=1, results=[{"seq": 1, "result": "kept"}])
    for _ in range(6):
        e.send(), e.handle(state=2)
    wait_until(lambda: len(e.generations()) == 1, "old generations are gone")
    assert outcome(e.ask("k"))["result"] == "kept"


def test_an_outcome_goes_with_its_key_and_not_before_it_is_known(entity):
    """The key leaves the window while the update waits: its handler can still answer, and the place to look still tells."""
    e = entity(dedup_max_keys=2)
    place = e.ask("k").header("Location")
    for n in range(5):
        e.send(dedup_key=f"o{n}")
    e.handle(state=1, results=[{"seq": 1, "result": "late"}])
    assert e.api.get(place, tenant=e.tenant).json["result"] == "late"
    for n in range(5):
        e.send(dedup_key=f"p{n}")
    assert_problem(e.api.get(place, tenant=e.tenant), 404, "UPDATE_NOT_FOUND")
    assert waits(e.ask("k"), duplicate=False) == e.path("/updates/12")
