"""Versions of entity types: entities stay with theirs until they are migrated, by a call of the new version's handler, once."""
import pytest

import harness
from actions import claim, complete, fail
from checks import assert_problem
from entities import TYPES, Entity, define, due, seqs
from harness import together
from inspect_store import assert_healthy, doctor_on_file
from pages import walk

OLD = {"queue": "q", "handler": "h1"}
NEW = {"queue": "q2", "handler": "h2"}


@pytest.fixture
def entity(api, tenant):
    def make(eid="e", **rules):
        define(api, tenant, **{**OLD, **rules})
        return Entity(api, tenant, eid)
    return make


def new_version(e, **rules):
    return define(e.api, e.tenant, **{"version": 2, **NEW, **rules})


def test_entities_stay_with_their_version_and_new_ones_get_the_newest(entity):
    e = entity(max_batch=1)
    e.send(), e.handle(state={"v": 1})
    assert new_version(e)["created"] is True
    young = Entity(e.api, e.tenant, "young")
    e.send(), young.send()
    job = e.call()
    assert (job["handler"], job["input"]["type_version"], job["input"]["state_version"]) == ("h1", 1, 1)
    job = young.call(queues=["q2"])
    assert (job["handler"], job["input"]["type_version"], job["input"]["state_version"]) == ("h2", 2, None)
    listed = {v: [x["id"] for x in walk(e.api, f"/api/v1/entities/account?version={v}", e.tenant)] for v in (1, 2)}
    assert listed == {1: ["e"], 2: ["young"]}
    assert [(v["version"], v["handler"]) for v in e.api.get(f"{TYPES}/account", tenant=e.tenant).json["versions"]] == [(2, "h2"), (1, "h1")]


def test_a_version_that_is_changed_in_place_counts_for_the_entities_that_have_it(entity):
    e = entity()
    for _ in range(4):
        e.send()
    define(e.api, e.tenant, **{**OLD, "max_batch": 3, "handler": "h1b"})
    job = e.call()
    assert (job["handler"], seqs(job)) == ("h1b", [1, 2, 3])


def test_a_migration_is_a_call_of_the_new_version_and_recorded(entity):
    e = entity()
    e.send(dedup_key="k"), e.handle(state={"points": 5}, set_timers=[{"name": "idle", "in_ms": 3_600_000}])
    new_version(e)
    assert e.migrate() == {"status": "migrating", "from": 1, "to": 2}
    shown = e.see()
    assert (shown["migrating_to"], shown["type_version"], shown["status"], shown["call"]["kind"]) == (2, 1, "waiting", "migrate")
    e.no_call()
    job = e.call(queues=["q2"])
    given = job["input"]
    assert (job["handler"], given["kind"], given["state"], given["from_version"], given["to_version"], given["signals"], given["timers"]) == \
        ("h2", "migrate", {"points": 5}, 1, 2, [], [])
    e.answer(job, state={"balance": 5}, emit=[{"event": "moved"}])
    shown = e.see()
    assert (shown["type_version"], shown["state_version"], shown["state"], shown["migrating_to"], shown["generation"], shown["version"]) == (2, 2, {"balance": 5}, None, 2, 2)
    assert [t["name"] for t in shown["timers"]] == ["idle"] and shown["dedup"]["keys"] == 1
    assert [(g["reason"], g["type_version"]) for g in e.generations()] == [("created", 1), ("migrated", 2)] and e.generations()[1]["state"] == {"balance": 5}
    assert [x["data"] for x in e.events("entity.migrated")] == [{"from": 1, "to": 2, "generation": 2}] and len(e.events("entity.migration_requested")) == 1
    assert e.signal(dedup_key="k").json["duplicate"] is True
    audit = [a for a in walk(e.api, "/api/v1/audit?limit=200", e.tenant) if a["action"] == "entity.migrate"]
    assert len(audit) == 1, audit


def test_asking_again_changes_nothing(entity):
    e = entity()
    e.send(), e.handle(state=1)
    new_version(e)
    replies = together(8, lambda i: e.migrate())
    assert replies == [{"status": "migrating", "from": 1, "to": 2}] * 8 and len(e.events("entity.migration_requested")) == 1
    before = e.see()
    assert e.migrate(version=2) == replies[0] and e.see() == before
    e.answer(e.call(queues=["q2"]), state=2)
    before = e.see()
    assert e.migrate() == e.migrate(version=2) == {"status": "migrated", "from": 2, "to": 2} and e.see() == before
    assert claim(e.api, e.tenant, queues=["q", "q2"], max=10) == []


def test_signals_meanwhile_wait_for_the_new_version(entity):
    e = entity(max_batch=1)
    for n in range(3):
        e.send("add", n)
    first = e.call()
    new_version(e)
    assert e.migrate()["status"] == "migrating"
    e.send("add", 3)
    e.answer(first, state="old")
    e.no_call()
    job = e.call(queues=["q2"])
    assert (job["input"]["kind"], job["input"]["state"]) == ("migrate", "old")
    e.send("add", 4)
    e.answer(job, state="moved")
    job = e.call(queues=["q2"])
    assert (job["handler"], job["input"]["kind"], seqs(job), job["input"]["state"]) == ("h2", "signals", [2, 3, 4, 5], "moved")


def test_timers_that_become_due_meanwhile_are_the_new_versions(entity):
    e = entity()
    e.send()
    job = e.call()
    new_version(e)
    e.migrate()
    e.answer(job, state=1, set_timers=[{"name": "now", "in_ms": 0}])
    job = e.call(queues=["q2"])
    assert (job["input"]["kind"], due(job)) == ("migrate", [])
    e.answer(job, state=2)
    job = e.call(queues=["q2"])
    assert (job["input"]["kind"], due(job)) == ("signals", ["now"])


def test_a_migration_that_says_no_state_keeps_it_as_of_the_new_version(entity):
    e = entity()
    e.send(), e.handle(state={"points": 5})
    new_version(e)
    e.migrate()
    e.answer(e.call(queues=["q2"]))
    assert (e.see()["state"], e.see()["state_version"], e.see()["type_version"]) == ({"points": 5}, 2, 2)


def test_a_migration_survives_kills_and_is_made_once():
    with harness.server() as s:
        define(s.client(), "t", **OLD)
        e = Entity(s.client(), "t")

        def kill():
            s.kill()
            s.start()
            e.api = s.client()

        e.send(), e.handle(state=1)
        new_version(e)
        e.migrate()
        kill()
        assert e.migrate() == {"status": "migrating", "from": 1, "to": 2}
        job = e.call(queues=["q2"], lease_ms=60_000)
        kill()
        e.answer(job, state=2)
        kill()
        assert complete(e.api, "t", job, output={"state": 2}).json["status"] == "already_completed"
        assert (e.see()["type_version"], e.see()["generation"]) == (2, 2) and len(e.events("entity.migrated")) == 1
        assert e.migrate()["status"] == "migrated"
        assert_healthy(e.api)
        s.kill()
        doctor_on_file(s.db)


def test_a_migration_that_fails_is_tried_again_and_blocks_when_it_cannot_be(entity):
    e = entity(retry={"backoff_ms": 1})
    e.send(), e.handle(state=1)
    new_version(e, retry={"backoff_ms": 1})
    e.migrate()
    assert fail(e.api, e.tenant, e.call(queues=["q2"])).json["status"] == "retrying"
    job = e.call(queues=["q2"])
    assert (job["attempt"], job["input"]["kind"]) == (2, "migrate") and fail(e.api, e.tenant, job, retryable=False).json["status"] == "failed"
    assert (e.see()["status"], e.see()["type_version"], e.see()["state"]) == ("blocked", 1, 1)
    e.send()
    assert e.api.post(f"/api/v1/dead-letters/{job['job_id']}/retry", tenant=e.tenant).status == 200
    e.answer(e.call(queues=["q2"]), state=2)
    assert seqs(e.call(queues=["q2"])) == [2]


@pytest.mark.parametrize("call", ["waits", "waits again", "is blocked", "fails meanwhile", "expires meanwhile"])
def test_a_call_of_the_old_version_makes_way(entity, call):
    """A handler that cannot cope is often why there is a new version: its signals and its timers are the new one's."""
    e = entity(retry={"backoff_ms": 300_000, "max_backoff_ms": 300_000})
    e.send(), e.handle(state=1, set_timers=[{"name": "now", "in_ms": 0}])
    e.send()
    old = None if call == "waits" else e.call(lease_ms=1000 if call.startswith("expires") else 60_000)
    if call in ("waits again", "is blocked"):
        fail(e.api, e.tenant, old, retryable=call == "waits again")
    new_version(e)
    assert e.migrate()["status"] == "migrating"
    if call == "fails meanwhile":
        fail(e.api, e.tenant, old, retryable=False)
    job = e.call(queues=["q2"])
    assert (job["input"]["kind"], job["input"]["state"]) == ("migrate", 1)
    if old:
        assert_problem(complete(e.api, e.tenant, old, output={"state": "old"}), 409, "LEASE_LOST")
    e.answer(job, state=2)
    job = e.call(queues=["q2"])
    assert (job["input"]["kind"], job["input"]["state"], seqs(job), due(job)) == ("signals", 2, [2], ["now"])
    assert walk(e.api, "/api/v1/dead-letters", e.tenant) == []


@pytest.mark.parametrize("output", [{"finished": True}, {"results": [{"seq": 1, "result": 1}]}])
def test_a_migration_neither_ends_nor_answers(entity, output):
    e = entity()
    e.send(), e.handle(state=1)
    new_version(e)
    e.migrate()
    job = e.call(queues=["q2"])
    assert_problem(complete(e.api, e.tenant, job, output={"state": 2, **output}), 422, "ENTITY_ANSWER_INVALID")
    e.answer(job, state=2)


def test_there_is_no_way_back_and_none_to_what_is_not_there(entity):
    e = entity()
    new_version(e)
    e.send(), e.answer(e.call(queues=["q2"]), state=1)
    before = e.see()
    for version in (1, 3, 99):
        assert_problem(e.api.post(e.path("/migrate"), {"version": version}, tenant=e.tenant), 409, "ENTITY_VERSION_UNKNOWN")
    assert e.see() == before


def test_a_migration_that_no_worker_has_makes_way_for_another(entity):
    e = entity()
    e.send(), e.handle(state=1)
    new_version(e), new_version(e, version=3)
    e.migrate(version=2)
    assert e.migrate(version=3) == {"status": "migrating", "from": 1, "to": 3}
    job = e.call(queues=["q2"])
    assert (job["input"]["from_version"], job["input"]["to_version"]) == (1, 3)
    before = e.see()
    assert_problem(e.api.post(e.path("/migrate"), {"version": 2}, tenant=e.tenant), 409, "ENTITY_MIGRATING")
    assert e.see() == before
    e.answer(job, state=3)
    assert e.see()["type_version"] == 3 and [x["data"]["to"] for x in e.events("entity.migrated")] == [3]


def test_one_that_finishes_before_it_is_migrated_stays_finished(entity):
    """There is nothing to migrate: when something comes, it begins anew with the newest version."""
    e = entity()
    e.send()
    job = e.call()
    new_version(e)
    e.migrate()
    e.answer(job, state="over", finished=True)
    shown = e.see()
    assert (shown["status"], shown["state"], shown["migrating_to"]) == ("finished", "over", None)
    assert claim(e.api, e.tenant, queues=["q", "q2"], max=10) == []
    e.send()
    job = e.call(queues=["q2"])
    assert (job["input"]["kind"], job["input"]["type_version"], job["input"]["state"]) == ("signals", 2, None)
