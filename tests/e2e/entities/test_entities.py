"""Entities: signals that are applied once and in order, one call at a time, whatever fails in between; timers; what their answers do elsewhere; generations."""
import datetime

import pytest

import harness
from actions import claim, complete, ended, fail, result, task
from checks import assert_problem
from entities import Entity, contents, define, due, seqs
from harness import together, wait_until
from inspect_store import all_runs, assert_healthy, doctor_on_file, rows
from pages import walk


@pytest.fixture
def entity(api, tenant):
    """entity(**rules): one of a type with these rules."""
    def make(eid="e", **rules):
        define(api, tenant, **rules)
        return Entity(api, tenant, eid)
    return make


@pytest.fixture
def own():
    """A server of the test alone, with a type: own(**rules) is an entity, own.kill() kills the server and starts it again."""
    class Own:
        def __call__(self, **rules):
            define(self.api, "t", **rules)
            self.e = Entity(self.api, "t")
            return self.e

        def kill(self):
            self.server.kill()
            self.server.start()
            self.api = self.e.api = self.server.client()

    with harness.server() as s:
        o = Own()
        o.server, o.api = s, s.client()
        yield o
        assert_healthy(o.api)
        s.kill()
        doctor_on_file(s.db)


def in_future(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- signals ---

def test_the_first_signal_makes_the_entity(entity):
    e = entity()
    assert_problem(e.api.get(e.path(), tenant=e.tenant), 404, "ENTITY_NOT_FOUND")
    r = e.signal("open", {"by": "Ada"}, dedup_key="k")
    assert r.json == {"seq": 1, "duplicate": False, "generation": 1}
    shown = e.see()
    assert (shown["status"], shown["state"], shown["version"], shown["generation"], shown["inbox"], shown["last_seq"], shown["consumed_seq"]) == ("waiting", None, 0, 1, 1, 1, 0)
    assert (shown["type_version"], shown["state_version"], shown["timers"], shown["migrating_to"], shown["finished_at"]) == (1, None, [], None, None)
    assert shown["dedup"] == {"keys": 1, "oldest": shown["created_at"], "window_s": 259200, "max_keys": 10000}
    assert e.story() == ["entity.created", "entity.signaled"]
    recorded = e.events()[1]["data"]
    assert (recorded["signal"], recorded["name"], recorded["payload"], recorded["dedup_key"]) == (1, "open", {"by": "Ada"}, "k")


def test_a_call_has_the_state_and_the_signals_and_its_answer_is_the_state(entity):
    e = entity()
    e.send("open", {"by": "Ada"}), e.send("add", 5)
    job = e.call()
    given = job["input"]
    assert (job["handler"], job["attempt"], job["run_id"], job["workflow_id"], job["step"], job["tenant"]) == ("h", 1, None, None, None, e.tenant)
    assert (given["kind"], given["state"], given["version"], given["generation"], given["type_version"], given["state_version"]) == ("signals", None, 0, 1, 1, None)
    assert [(s["seq"], s["name"], s["payload"]) for s in given["signals"]] == [(1, "open", {"by": "Ada"}), (2, "add", 5)]
    assert given["timers"] == [] and given["more"] is False and e.see()["status"] == "running"
    assert e.answer(job, state={"sum": 5})["status"] == "completed"
    shown = e.see()
    assert (shown["status"], shown["state"], shown["version"], shown["inbox"], shown["state_version"], shown["call"]) == ("idle", {"sum": 5}, 1, 0, 1, None)
    assert e.story() == ["entity.created", "entity.signaled", "entity.signaled", "entity.called", "entity.handled"]
    e.send("add", 2)
    assert e.call()["input"]["state"] == {"sum": 5}


@pytest.mark.parametrize("answer", [{}, {"set_timers": []}])
def test_an_answer_without_a_state_leaves_it(entity, answer):
    e = entity()
    e.send(), e.handle(state={"sum": 1})
    e.send(), e.handle(**answer)
    assert (e.see()["state"], e.see()["version"]) == ({"sum": 1}, 2)


def test_an_answer_may_make_the_state_null(entity):
    e = entity()
    e.send(), e.handle(state=1)
    e.send(), e.handle(state=None)
    assert e.see()["state"] is None


def test_duplicates_change_nothing_at_all(own):
    """Whatever has happened since: the whole file stays as it was."""
    e = own(rollover_events=5)
    e.send("add", {"b": 1, "a": [1.0, "ü"]}, dedup_key="k")

    def again(*moments):
        before, file = e.see(), contents(own.server.db)
        for payload in ({"b": 1, "a": [1.0, "ü"]}, {"a": [1.0, "\u00fc"], "b": 1}):
            r = e.signal("add", payload, dedup_key="k")
            assert r.status == 200 and r.json == {"seq": 1, "duplicate": True, "generation": before["generation"]}, (moments, r)
        for r in (e.signal("add", 2, dedup_key="k"), e.signal("other", {"b": 1, "a": [1.0, "ü"]}, dedup_key="k")):
            assert_problem(r, 422, "IDEMPOTENCY_KEY_REUSED")
        assert e.see() == before, moments
        assert contents(own.server.db) == file, moments

    again("while it waits")
    job = e.call()
    wait_until(lambda: rows(own.server.db, "SELECT 1 FROM timers"), "the timer of its lease is in the store")
    again("while it is handled")
    e.answer(job, state=1, set_timers=[{"name": "idle", "in_ms": 3_600_000}])
    again("after that")
    for n in range(8):
        e.send(dedup_key=f"k{n}"), e.handle(state=n)
    assert e.see()["generation"] >= 3
    again("after roll-overs")
    own.kill()
    again("after kill -9")
    e.send("end"), e.handle(finished=True)
    again("when it has finished")


def test_signals_are_numbered_without_a_gap_by_however_many_they_are_sent(entity):
    e = entity(max_batch=1000)
    got = together(16, lambda i: [e.send("add", n, **({"dedup_key": f"{i}-{n}"} if n % 2 else {})) for n in range(10)])
    assert sorted(n for part in got for n in part) == list(range(1, 161)) and all(part == sorted(part) for part in got)
    job = e.call()
    assert seqs(job) == list(range(1, 161)) and e.see()["dedup"]["keys"] == 80


def test_one_key_by_many_at_once_is_one_signal(entity):
    e = entity()
    replies = together(16, lambda i: e.signal("add", 5, dedup_key="k"))
    assert sorted((r.status, r.json["seq"], r.json["duplicate"]) for r in replies) == [(200, 1, False)] + [(200, 1, True)] * 15
    assert seqs(e.call()) == [1] and e.see()["last_seq"] == 1


def test_signals_without_a_key_are_all_different(entity):
    e = entity()
    assert [e.send("add", 1) for _ in range(3)] == [1, 2, 3] and e.see()["dedup"]["keys"] == 0


def test_what_was_answered_survives_a_kill_before_it_is_handled(own):
    e = own()
    for n in range(3):
        e.send("add", n, dedup_key=f"k{n}")
    before = e.see()
    own.kill()
    assert e.see() == before
    job = e.call()
    assert [s["payload"] for s in job["input"]["signals"]] == [0, 1, 2]
    own.kill()
    assert e.see()["status"] == "running"
    e.answer(job, state="all")
    own.kill()
    assert (e.see()["state"], e.see()["inbox"], e.see()["version"]) == ("all", 0, 1)
    assert complete(e.api, e.tenant, job, output={"state": "all"}).json["status"] == "already_completed"


# --- calls ---

def test_one_call_at_a_time_and_many_entities_at_once(entity):
    some = [entity(eid=f"e{n}") for n in range(10)]
    for e in some * 3:
        e.send()
    api, tenant = some[0].api, some[0].tenant
    jobs = [j for part in together(8, lambda i: claim(api, tenant, worker_id=f"w{i}", queues=["q"], max=5)) for j in part]
    assert sorted(j["input"]["entity"]["id"] for j in jobs) == sorted(e.eid for e in some)
    for e in some:
        e.send()
        e.no_call()
    assert complete(api, tenant, jobs[0], output={"state": 1}).status == 200
    assert claim(api, tenant, queues=["q"], max=10)[0]["input"]["entity"] == jobs[0]["input"]["entity"]


def test_a_batch_has_at_most_so_many_signals(entity):
    e = entity(max_batch=3)
    for _ in range(7):
        e.send()
    got = [e.handle(state=1) for _ in range(3)]
    assert [seqs(j) for j in got] == [[1, 2, 3], [4, 5, 6], [7]] and [j["input"]["more"] for j in got] == [True, True, False]


def test_a_batch_has_at_most_so_many_bytes_unless_one_signal_has_more(entity):
    e = entity()
    for kib in (200, 200, 200, 1, 512, 1, 1):
        e.send("add", "x" * (kib * 1024 - 2))
    assert [seqs(e.handle(state=1)) for _ in range(4)] == [[1, 2], [3, 4], [5], [6, 7]]


def test_every_attempt_has_the_same_signals_and_timers(entity):
    """The first may have done things in the world under the id of its job."""
    e = entity(max_batch=5, retry={"backoff_ms": 1, "max_backoff_ms": 1})
    e.send(), e.handle(state=0, set_timers=[{"name": "now", "in_ms": 0}])
    e.send(), e.send()
    first = e.call(lease_ms=1000)
    assert (seqs(first), due(first)) == ([2, 3], ["now"])
    e.send()
    tries = [first]
    for how in ("expires", "fails", "is released"):
        if how == "fails":
            assert fail(e.api, e.tenant, tries[-1]).json["status"] == "retrying"
        elif how == "is released":
            assert e.api.post(f"/api/v1/jobs/{first['job_id']}/release", {"lease_token": tries[-1]["lease_token"]}, tenant=e.tenant).status == 200
        e.send()
        tries.append(e.call(lease_ms=60_000))
    assert {j["job_id"] for j in tries} == {first["job_id"]} and len({j["lease_token"] for j in tries}) == 4
    for j in tries:
        assert j["input"]["signals"] == first["input"]["signals"] and j["input"]["timers"] == first["input"]["timers"] and j["input"]["version"] == 1
    e.answer(tries[-1], state=1)
    assert seqs(e.call()) == [4, 5, 6, 7]


def test_an_answer_by_a_lease_that_has_ended_is_refused_and_recorded_once(entity):
    e = entity()
    e.send()
    old = e.call(lease_ms=1000)
    new = e.call()
    assert (new["attempt"], new["job_id"]) == (2, old["job_id"])
    before = e.see()
    for answer in ({"state": "old"}, {"state": "old"}, {"state": "other"}):
        assert_problem(complete(e.api, e.tenant, old, output=answer), 409, "LEASE_LOST")
    assert_problem(fail(e.api, e.tenant, old, retryable=False), 409, "LEASE_LOST")
    assert_problem(e.api.post(f"/api/v1/jobs/{old['job_id']}/heartbeat", {"lease_token": old["lease_token"]}, tenant=e.tenant), 409, "LEASE_LOST")
    assert e.see() == {**before, "events": before["events"] + 1}
    assert [x["data"]["job_id"] for x in e.events("job.stale_result")] == [old["job_id"]]
    e.answer(new, state="new")
    assert_problem(complete(e.api, e.tenant, old, output={"state": "old"}), 409, "LEASE_LOST")
    assert (e.see()["state"], e.see()["version"]) == ("new", 1) and len(e.events("job.stale_result")) == 1


def test_a_repeated_answer_is_known_and_another_is_refused(entity):
    e = entity()
    e.send()
    job = e.call()
    e.answer(job, state={"a": 1, "b": 2}, emit=[{"event": "x"}])
    before = e.see()
    for again in ({"emit": [{"event": "x"}], "state": {"b": 2, "a": 1}}, {"state": {"a": 1, "b": 2}, "emit": [{"event": "x"}]}):
        assert complete(e.api, e.tenant, job, output=again).json["status"] == "already_completed"
    assert_problem(complete(e.api, e.tenant, job, output={"state": 3}), 409, "LEASE_LOST")
    assert_problem(fail(e.api, e.tenant, job), 409, "LEASE_LOST")
    assert e.see() == before and len(e.events("event.emitted")) == 1


def test_a_heartbeat_keeps_the_lease_and_a_batch_of_results_is_taken(entity):
    e = entity()
    e.send()
    job = e.call(lease_ms=60_000)
    r = e.api.post(f"/api/v1/jobs/{job['job_id']}/heartbeat", {"lease_token": job["lease_token"], "progress": 5}, tenant=e.tenant)
    assert r.status == 200 and r.json["lease_expires_at"] >= job["lease_expires_at"] and r.json["cancel_requested"] is False
    e.send()
    r = e.api.post("/api/v1/jobs:complete", {"items": [result(job, output={"state": 1})], "claim": {"worker_id": "w", "queues": ["q"], "max": 1}}, tenant=e.tenant)
    assert [x["status"] for x in r.json["results"]] == ["completed"] and [seqs(j) for j in r.json["jobs"]] == [[2]]


def test_a_call_that_fails_is_made_again_after_a_while(entity):
    e = entity(retry={"backoff_ms": 300_000, "max_backoff_ms": 300_000})
    e.send()
    job = e.call()
    r = fail(e.api, e.tenant, job, message="the bank is closed")
    assert r.status == 200 and r.json["status"] == "retrying" and r.json["retry_at"]
    shown = e.see()
    assert (shown["status"], shown["inbox"], shown["version"], shown["state"]) == ("retrying", 1, 0, None)
    assert shown["call"]["retry_at"] == r.json["retry_at"] and shown["call"]["error"] == {"code": "BROKEN", "message": "the bank is closed"}
    assert fail(e.api, e.tenant, job, message="the bank is closed").json["status"] == "already_failed"
    e.send()
    e.no_call()
    recorded = e.events("entity.call_failed")
    assert len(recorded) == 1 and (recorded[0]["data"]["attempt"], recorded[0]["data"]["error"]["code"], recorded[0]["data"]["retry_at"]) == (1, "BROKEN", r.json["retry_at"])


def test_without_a_limit_it_is_tried_until_it_succeeds(entity):
    e = entity(retry={"backoff_ms": 1, "max_backoff_ms": 2})
    e.send()
    for attempt in range(1, 31):
        job = e.call()
        assert job["attempt"] == attempt and fail(e.api, e.tenant, job).json["status"] == "retrying"
    e.handle(state="at last")
    assert e.see()["state"] == "at last"


@pytest.mark.parametrize("how", ["not retryable", "too often", "leases"])
def test_what_fails_for_good_blocks_the_entity_until_somebody_retries_it(own, how):
    e = own(retry={"max_attempts": 0 if how == "not retryable" else 2, "backoff_ms": 1})
    e.send()
    job = e.call(lease_ms=1000 if how == "leases" else 60_000)
    if how == "not retryable":
        assert fail(e.api, e.tenant, job, retryable=False).json["status"] == "failed"
    elif how == "too often":
        assert fail(e.api, e.tenant, job).json["status"] == "retrying" and fail(e.api, e.tenant, e.call()).json["status"] == "failed"
    else:
        e.call(lease_ms=1000)
    shown = e.is_in("blocked")
    assert (shown["call"]["job_id"], shown["call"]["state"], shown["inbox"]) == (job["job_id"], "failed", 1)
    assert e.story()[-1] == "entity.blocked"
    assert e.signal(payload=2, dedup_key="k").status == 200 and e.signal(payload=2, dedup_key="k").json["duplicate"] is True
    e.no_call()
    own.kill()
    assert e.see()["status"] == "blocked" and [d["job_id"] for d in walk(e.api, "/api/v1/dead-letters", e.tenant)] == [job["job_id"]]
    r = e.api.post(f"/api/v1/dead-letters/{job['job_id']}/retry", tenant=e.tenant)
    assert r.status == 200, r
    assert walk(e.api, "/api/v1/dead-letters", e.tenant) == [] and e.see()["status"] == "waiting" and e.story()[-1] == "entity.unblocked"
    again = e.call()
    assert again["job_id"] == job["job_id"] and seqs(again) == [1]
    e.answer(again, state=1)
    assert seqs(e.handle(state=2)) == [2] and e.see()["status"] == "idle"


INVALID = [
    5, None, [], {"status": {}}, {"state": 1, "colour": 1}, {"finished": "yes"}, {"state": "x" * (256 * 1024)},
    {"set_timers": {}}, {"set_timers": [{}]}, {"set_timers": [{"name": "a"}]}, {"set_timers": [{"name": "a", "in_ms": -1}]}, {"set_timers": [{"name": "a b", "in_ms": 1}]},
    {"set_timers": [{"name": "a", "in_ms": 1, "at": "2030-01-01T00:00:00Z"}]}, {"set_timers": [{"name": "a", "at": "tomorrow"}]},
    {"set_timers": [{"name": "a", "in_ms": 1}, {"name": "a", "in_ms": 2}]}, {"set_timers": [{"name": "a", "in_ms": 1}], "cancel_timers": ["a"]}, {"cancel_timers": [5]},
    {"set_timers": [{"name": f"t{n}", "in_ms": 1} for n in range(101)]},
    {"emit": [{"payload": 1}]}, {"emit": [{"event": "run.succeeded"}]}, {"emit": [{"event": "entity.created"}]}, {"emit": [5]},
    {"start": [{}]}, {"start": [{"workflow_id": "w", "labels": {"a": 1}}]}, {"start": [{"workflow_id": "w", "idempotency_key": ""}]},
    {"results": [{"seq": 1}]}, {"results": [{"seq": 9, "result": 1}]}, {"results": [{"result": 1}]},
]


@pytest.mark.parametrize("output", INVALID, ids=lambda output: str(output)[:40])
def test_an_answer_that_cannot_be_is_refused_whole_and_the_lease_goes_on(entity, output):
    e = entity()
    e.send()
    job = e.call()
    before, good = e.see(), {"state": "never", "emit": [{"event": "never"}]}
    if isinstance(output, dict):
        output = {**good, **output}
    assert_problem(complete(e.api, e.tenant, job, output=output), 422, "ENTITY_ANSWER_INVALID")
    assert e.see() == before
    assert e.answer(job, state="well")["status"] == "completed" and e.see()["state"] == "well"


def test_a_state_may_have_256_kib(entity):
    e = entity()
    e.send(), e.handle(state="x" * (256 * 1024 - 2))
    assert len(e.see()["state"]) == 256 * 1024 - 2


# --- timers ---

def test_a_timer_that_is_due_calls_the_handler_once(own):
    e = own(rollover_events=2)
    e.send(), e.handle(state=0, set_timers=[{"name": "soon", "in_ms": 1, "payload": {"why": "idle"}}])
    job = e.call()
    (timer,) = job["input"]["timers"]
    assert (timer["name"], timer["payload"], seqs(job)) == ("soon", {"why": "idle"}, []) and job["input"]["kind"] == "signals"
    own.kill()
    assert e.see()["status"] == "running"
    e.answer(job, state=1)
    assert e.see()["timers"] == [] and e.is_in("idle")["version"] == 2
    own.kill()
    e.no_call()
    assert len(e.events("entity.timer_due")) == 1


def test_setting_a_timer_again_replaces_it_and_cancelling_removes_it(entity):
    e = entity()
    e.send(), e.handle(set_timers=[{"name": "a", "in_ms": 1_000_000, "payload": 1}, {"name": "b", "in_ms": 2_000_000}, {"name": "c", "at": "2040-01-01T00:00:00Z"}])
    first = {t["name"]: t for t in e.see()["timers"]}
    assert sorted(first) == ["a", "b", "c"] and first["c"] == {"name": "c", "due_at": "2040-01-01T00:00:00.000Z", "payload": None} and first["a"]["payload"] == 1
    e.send(), e.handle(set_timers=[{"name": "a", "in_ms": 5_000_000, "payload": 2}], cancel_timers=["b", "unknown"])
    second = {t["name"]: t for t in e.see()["timers"]}
    assert sorted(second) == ["a", "c"] and second["a"]["payload"] == 2 and second["a"]["due_at"] > first["a"]["due_at"] and second["c"] == first["c"]


def test_a_timer_that_is_put_off_again_and_again_does_not_fire(entity):
    """The idle timer of an entity that is not idle: replaced while it is near, it fires once, from the last time it was set."""
    e = entity()
    for _ in range(5):
        e.send(), e.handle(set_timers=[{"name": "idle", "in_ms": 60_000}])
    e.send(), e.handle(set_timers=[{"name": "idle", "in_ms": 1}])
    assert due(e.handle(state="idle")) == ["idle"]
    e.no_call()
    assert len(e.events("entity.timer_due")) == 1 and e.see()["timers"] == []


def test_a_timer_may_be_set_anew_by_the_call_that_it_made(entity):
    e = entity()
    e.send(), e.handle(set_timers=[{"name": "tick", "in_ms": 1}])
    for _ in range(5):
        assert due(e.handle(set_timers=[{"name": "tick", "in_ms": 1}])) == ["tick"]
    assert due(e.handle(cancel_timers=["tick"])) == ["tick"]
    e.no_call()
    assert e.see()["timers"] == []


def test_a_timer_that_becomes_due_during_a_call_comes_with_the_next(entity):
    e = entity()
    for seconds in (0.3, 3, 30):  # a slow machine needs longer until the call is under way
        e.send(), e.handle(set_timers=[{"name": "later", "at": in_future(seconds)}, {"name": "gone", "at": in_future(seconds)}])
        e.send()
        job = e.call()
        if due(job) == []:
            break
        e.answer(job)
    wait_until(lambda: e.see()["timers"][1]["due_at"] < in_future(0), "the timers are due", 60)
    last = e.send()
    e.answer(job, state=1, cancel_timers=["gone"])
    following = e.call()
    assert (seqs(following), due(following)) == ([last], ["later"])
    e.answer(following, state=2)
    assert e.see()["timers"] == []
    e.no_call()


def test_a_timer_in_the_past_is_due_at_once_and_they_come_in_one_call(entity):
    e = entity()
    e.send(), e.handle(set_timers=[{"name": n, "at": t} for n, t in (("b", "2001-01-01T00:00:00Z"), ("a", "2002-01-01T00:00:00Z"), ("c", "2099-01-01T00:00:00Z"))])
    assert sorted(due(e.handle())) == ["a", "b"]
    e.no_call()
    assert [t["name"] for t in e.see()["timers"]] == ["c"]


@pytest.mark.slow
def test_a_timer_at_an_absolute_time_fires_once_through_rollovers_and_kills(own):
    e = own(rollover_events=4)
    when = in_future(4)
    e.send(), e.handle(state={"fired": 0}, set_timers=[{"name": "party", "at": when, "payload": "cake"}, {"name": "far", "in_ms": 10 ** 9}])
    fired, kills = [], 0
    while not fired:
        assert [t["name"] for t in e.see()["timers"]] == ["party", "far"]
        e.send()
        job = e.call()
        fired += job["input"]["timers"]
        if kills < 4:
            own.kill()
            kills += 1
        e.answer(job, state={"fired": len(fired)})
    assert fired == [{"name": "party", "due_at": when, "payload": "cake"}] and in_future(0) >= when
    own.kill()
    for _ in range(3):
        e.send()
        assert due(e.handle(state={"fired": 1})) == []
    assert e.see()["generation"] >= 4 and [t["name"] for t in e.see()["timers"]] == ["far"]
    assert all([t["name"] for t in g["timers"]] in (["far"], ["party", "far"]) for g in e.generations()[1:])


# --- what answers do elsewhere ---

def test_what_is_emitted_reaches_a_webhook_once(calling_server, receiver):
    api = calling_server.client()
    tenant = api.tenant()
    define(api, tenant, rollover_events=3, keep_generations=0)
    e = Entity(api, tenant, "cust/1")
    r = api.post("/api/v1/webhooks", {"url": receiver.answers("/hook", (200, b"")), "events": ["tier.*"]}, tenant=tenant)
    assert r.status == 200, r
    for n in range(4):
        e.send(), e.handle(state=n, emit=[{"event": "tier.reached", "payload": {"tier": n}}, {"event": "other"}, {"event": "tier.left"}])
    wait_until(lambda: len(receiver.at("/hook")) >= 8, "all have come")
    bodies = [s.json for s in receiver.at("/hook")]
    assert [b["type"] for b in bodies] == ["tier.reached", "tier.left"] * 4 and [b["data"]["payload"] for b in bodies[::2]] == [{"tier": n} for n in range(4)]
    for b in bodies:
        assert (b["source"], b["subject"]) == (f"/pawl/{tenant}/entities/account/cust%2F1", "account/cust/1")
        assert (b["data"]["entity_type"], b["data"]["entity_id"]) == ("account", "cust/1")


def test_runs_are_started_once_though_the_server_is_killed(own):
    e = own()
    own.api.workflow("t", "greet", [task("hello")])
    for n in range(10):
        e.send("go", n)
    job = e.call()
    starts = [{"workflow_id": "greet", "input": {"n": n}, "labels": {"from": "e"}} for n in range(30)] + [{"workflow_id": "greet", "input": "twice", "idempotency_key": "mine"}] * 2
    e.answer(job, state=1, start=starts)
    own.kill()
    wait_until(lambda: len(e.events("entity.run_started")) == 32, "all are started")
    own.kill()
    recorded = e.events("entity.run_started")
    assert len(recorded) == 32 and len({x["data"]["run_id"] for x in recorded}) == 31 and {x["data"]["workflow_id"] for x in recorded} == {"greet"}
    runs = all_runs(own.api, "t")
    assert sorted(r["id"] for r in runs) == sorted({x["data"]["run_id"] for x in recorded})
    shown = [own.api.get(f"/api/v1/runs/{r['id']}", tenant="t").json for r in runs]
    assert sorted(r["input"]["n"] for r in shown if r["input"] != "twice") == list(range(30)) and sum(r["labels"] == {"from": "e"} for r in shown) == 30
    assert rows(own.server.db, "SELECT count(*) FROM entity_starts") == [(0,)]


def test_a_refused_start_is_recorded_and_holds_up_nothing(entity):
    e = entity()
    e.api.workflow(e.tenant, "strict", [task("hello")], input_schema={"type": "object"})
    e.api.workflow(e.tenant, "fine", [task("hello")])
    e.send(), e.handle(state=1, start=[{"workflow_id": "unknown"}, {"workflow_id": "strict", "input": 5}, {"workflow_id": "fine"}])
    wait_until(lambda: e.events("entity.run_started"), "the third is started")
    assert [(x["data"]["workflow_id"], x["data"]["code"]) for x in e.events("entity.run_refused")] == [("unknown", "WORKFLOW_NOT_FOUND"), ("strict", "INPUT_INVALID")]
    assert all(x["data"]["detail"] for x in e.events("entity.run_refused")) and e.see()["status"] == "idle"


@pytest.mark.parametrize("labels", [{"a": ""}, {"A.b_c-9": "ü" * 128}, {"n" * 128: "x"}, {f"l{n}": "x" for n in range(32)}], ids=lambda labels: str(labels)[:20])
def test_a_start_may_have_the_labels_that_a_request_may_have(entity, labels):
    e = entity()
    e.api.workflow(e.tenant, "w", [task("hello")])
    assert e.api.start(e.tenant, "w", {"labels": labels}).status == 200
    e.send(), e.handle(start=[{"workflow_id": "w", "labels": labels}])
    wait_until(lambda: e.events("entity.run_started"), "the run is started")
    assert [run["labels"] for run in all_runs(e.api, e.tenant)] == [labels] * 2


WRONG_LABELS = [{"a b": "x"}, {"ü": "x"}, {"a:b": "x"}, {"": "x"}, {"n" * 129: "x"}, {"a": 1}, {"a": "x" * 257}, {f"l{n}": "x" for n in range(33)}]


@pytest.mark.parametrize("labels", WRONG_LABELS, ids=lambda labels: str(labels)[:20])
def test_a_start_may_have_no_labels_that_a_request_may_not_have(entity, labels):
    e = entity()
    e.api.workflow(e.tenant, "w", [task("hello")])
    assert e.api.start(e.tenant, "w", {"labels": labels}).status == 400
    e.send()
    assert_problem(complete(e.api, e.tenant, e.call(), output={"start": [{"workflow_id": "w", "labels": labels}]}), 422, "ENTITY_ANSWER_INVALID")


def test_a_start_at_a_limit_comes_when_there_is_room(api):
    tenant = api.tenant(max_concurrent_runs=1)
    define(api, tenant)
    api.workflow(tenant, "one", [task("hello")])
    held = api.start(tenant, "one").json["run_id"]
    e = Entity(api, tenant)
    e.send(), e.handle(state=1, start=[{"workflow_id": "one"}])
    e.send(), e.handle(state=2)
    assert e.events("entity.run_started", "entity.run_refused") == [] and len(all_runs(api, tenant)) == 1
    assert api.work(tenant) and ended(api, tenant, held)
    wait_until(lambda: e.events("entity.run_started"), "the run is started")
    assert len(all_runs(api, tenant)) == 2


# --- the end, and after it ---

def test_one_that_has_finished_keeps_its_state_until_a_signal_opens_it_again(entity):
    e = entity(rollover_events=1000)
    e.send("open", dedup_key="k1"), e.handle(state={"sum": 5}, set_timers=[{"name": "idle", "in_ms": 1000}])
    e.send("end", dedup_key="k2"), e.handle(state={"sum": 9}, finished=True)
    shown = e.see()
    assert (shown["status"], shown["state"], shown["timers"], shown["generation"]) == ("finished", {"sum": 9}, [], 1) and shown["finished_at"]
    e.no_call()
    assert e.signal("open", dedup_key="k1").json == {"seq": 1, "duplicate": True, "generation": 1} and e.see() == shown
    assert e.signal("open", dedup_key="k3").json == {"seq": 3, "duplicate": False, "generation": 2}
    shown = e.see()
    assert (shown["status"], shown["state"], shown["state_version"], shown["version"], shown["finished_at"]) == ("waiting", None, None, 2, None)
    assert e.signal("open", dedup_key="k1").json["duplicate"] is True and e.signal("open", dedup_key="k3").json["duplicate"] is True
    job = e.call()
    assert (job["input"]["state"], seqs(job), job["input"]["generation"]) == (None, [3], 2)
    e.answer(job, state="anew")
    assert [g["reason"] for g in e.generations()] == ["created", "reopened"] and e.story()[-4:] == ["entity.signaled", "entity.reopened", "entity.called", "entity.handled"]


def test_signals_that_came_while_it_finished_open_it_again(entity):
    e = entity()
    e.send("end")
    job = e.call()
    e.send("open")
    e.answer(job, state="over", finished=True, set_timers=[{"name": "never", "in_ms": 1}])
    job = e.call()
    assert (job["input"]["state"], seqs(job), due(job)) == (None, [2], [])
    e.answer(job, state="anew")
    assert e.see()["status"] == "idle" and e.see()["finished_at"] is None


def test_a_new_one_gets_the_newest_version_when_it_is_opened_again(entity):
    e = entity(version=1)
    e.send(), e.handle(finished=True)
    define(e.api, e.tenant, version=2)
    assert e.see()["type_version"] == 1
    e.send()
    assert e.see()["type_version"] == 2 and e.handle(state=1)["input"]["type_version"] == 2


def test_one_that_is_deleted_is_gone_and_its_name_begins_anew(own):
    e = own(rollover_events=4, keep_generations=None)
    own.api.workflow("t", "greet", [task("hello")])
    for n in range(20):
        e.send(payload="x" * 100, dedup_key=f"k{n}"), e.handle(state=n, set_timers=[{"name": "idle", "in_ms": 3_600_000}])
    e.ask("u1"), e.send()
    job = e.call()
    assert e.delete() == {"type": "account", "id": "e", "deleted": True}
    for suffix in ("", "/events", "/generations", "/updates/21"):
        assert_problem(e.api.get(e.path(suffix), tenant="t"), 404)
    for r in (complete(e.api, "t", job, output={"state": "late"}), fail(e.api, "t", job), e.api.get(f"/api/v1/jobs/{job['job_id']}", tenant="t"),
              e.api.post(f"/api/v1/jobs/{job['job_id']}/heartbeat", {"lease_token": job["lease_token"]}, tenant="t")):
        assert_problem(r, 404, "JOB_NOT_FOUND")
    assert_problem(e.api.delete(e.path(), tenant="t"), 404, "ENTITY_NOT_FOUND")
    e.no_call()
    own.kill()
    assert e.signal("open", dedup_key="k1").json == {"seq": 1, "duplicate": False, "generation": 1}
    job = e.call()
    assert (job["input"]["state"], job["input"]["version"], seqs(job), due(job)) == (None, 0, [1], [])
    new = rows(own.server.db, "SELECT num FROM entities")
    assert len(new) == 1
    left = lambda: [t for t, column in (("events", "run"), ("jobs", "run"), ("timers", "run"), ("inbox", "entity"), ("entity_updates", "entity"), ("entity_timers", "entity"),
                                        ("entity_states", "entity"), ("entity_generations", "entity"), ("entity_starts", "entity"), ("dedup", "owner"), ("dedup_windows", "owner"))
                    if rows(own.server.db, f"SELECT 1 FROM {t} WHERE {column} <> ? LIMIT 1", new[0][0])]
    wait_until(lambda: not left(), "nothing of the old one is left")
    wait_until(lambda: rows(own.server.db, "SELECT count(*) FROM entity_sweeps") == [(0,)], "the sweep is over")
    e.answer(job, state="new")
    assert e.see()["state"] == "new"


def test_deleting_one_with_runs_to_start_leaves_nothing(own):
    e = own()
    r = own.api.put("/api/v1/tenants/t", {"max_concurrent_runs": 0}, tenant="t")
    assert r.status == 200, r
    own.api.workflow("t", "greet", [task("hello")])
    e.send(), e.handle(state=1, start=[{"workflow_id": "greet"}] * 3)
    e.delete()
    own.kill()
    for table in ("entity_starts", "entities", "entity_states", "events", "jobs"):
        wait_until(lambda: rows(own.server.db, f"SELECT count(*) FROM {table}") == [(0,)], f"{table} is empty")
    assert all_runs(own.api, "t") == []


# --- generations ---

def test_a_generation_ends_after_so_many_events_with_a_record_of_all_that_counts(entity):
    e = entity(rollover_events=10, keep_generations=None)
    for n in range(12):
        e.send(dedup_key=f"k{n}"), e.handle(state={"n": n}, set_timers=[{"name": "idle", "at": "2040-01-01T00:00:00Z"}])
    shown, made, story = e.see(), e.generations(), e.events()
    assert shown["generation"] == len(made) >= 4 and [g["generation"] for g in made] == list(range(1, len(made) + 1))
    assert [g["reason"] for g in made] == ["created"] + ["rolled_over"] * (len(made) - 1)
    assert [x["seq"] for x in story] == list(range(1, shown["events"] + 1)), "the timeline goes across generations"
    assert [x["data"]["generation"] for x in story if x["type"] == "entity.rolled_over"] == [g["generation"] for g in made[1:]]
    for g in made[1:]:
        before = [x for x in story if x["seq"] < g["first_event"]]
        handled = [x["data"] for x in before if x["type"] == "entity.handled"]
        assert g["version"] == len(handled) and g["consumed_seq"] == handled[-1]["through_seq"] and g["state"] == {"n": g["version"] - 1}, g
        assert [t["due_at"] for t in g["timers"]] == ["2040-01-01T00:00:00.000Z"] and g["dedup"]["keys"] == sum(x["type"] == "entity.signaled" for x in before)
    starts = [g["first_event"] for g in made] + [shown["events"] + 1]
    assert all(10 <= b - a <= 12 for a, b in zip(starts, starts[1:-1])), starts


@pytest.mark.parametrize("keep", [0, 2])
def test_old_generations_go_and_the_rest_stays_whole(own, keep):
    e = own(rollover_events=4, keep_generations=keep)
    for n in range(30):
        e.send(dedup_key=f"k{n}"), e.handle(state=n, set_timers=[{"name": "idle", "in_ms": 3_600_000}])
        if n == 15:
            own.kill()
    shown = e.see()
    wait_until(lambda: len(e.generations()) == keep + 1, "older generations are gone")
    kept, story = e.generations(), e.events()
    assert [g["generation"] for g in kept] == list(range(shown["generation"] - keep, shown["generation"] + 1))
    assert [x["seq"] for x in story] == list(range(kept[0]["first_event"], shown["events"] + 1))
    assert e.signal(dedup_key="k0").json["duplicate"] is True and e.see() == shown
    calls = rows(own.server.db, "SELECT count(*) FROM jobs")[0][0]
    assert calls <= 4 * (keep + 1), "the jobs of old generations are gone"


def test_roll_over_is_not_held_up_by_traffic_or_open_calls(entity):
    """Signals alone roll it over too, while a call is under way; nothing is lost and the call goes on."""
    e = entity(rollover_events=5, max_batch=1000)
    e.send()
    job = e.call()
    for _ in range(50):
        e.send()
    assert e.see()["generation"] >= 10
    e.answer(job, state=1)
    assert seqs(e.handle(state=2)) == list(range(2, 52)) and e.see()["inbox"] == 0
