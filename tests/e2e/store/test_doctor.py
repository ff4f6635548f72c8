"""The doctor of a real server: what it says about a damaged file, in the log and in the metrics, and what its repair leaves."""
import collections
import re

import pytest

import harness
from checks import without_shards
from cli import pawl
from harness import wait_until
from inspect_store import FOLD_COUNTERS, assert_healthy, doctor_on_file, rows, write
from prometheus import metrics

REPAIR = "/api/v1/doctor/repair"
LIMITED = {"concurrency": [{"limit": 3}, {"key": "input.customer", "limit": 1}]}


@pytest.fixture
def server(tmp_path):
    s = harness.Server(tmp_path).start()
    yield s
    s.close()


def busy(server):
    """A tenant that has reached its limits: active runs, queued ones, some that are over."""
    api = server.client()
    api.put("/api/v1/tenants/acme", {"max_concurrent_runs": 4, "at_limit": "queue"})
    api.workflow("acme", "w", **LIMITED)
    api.workflow("acme")
    for i in range(12):
        assert api.start("acme", "w", {"input": {"customer": f"c{i % 4}"}}, key=f"k{i}").status == 200
        assert api.start("acme", key=f"h{i}").status == 200
    api.work("acme"), api.work("acme")
    return api


def break_file(server, sql):
    """While the server does not run."""
    if server.process is not None:
        assert server.stop() == 0
    write(server.db, FOLD_COUNTERS + sql, "acme")


def start_again(server):
    """A client, after the look that the server takes by itself."""
    api = server.start().client()
    wait_until(lambda: differences(api), "the first look is over")
    return api


def differences(api):
    """{check: value} of the gauge."""
    text = metrics(api)
    return {m[1]: float(m[2]) for m in re.finditer(r'^pawl_doctor_differences\{check="(\w+)"\} (\S+)$', text, re.M)}


def checks(report):
    return {c["name"]: c for c in without_shards(report["checks"])}


# --- finding ---

def test_a_leaked_slot_is_in_the_log_and_the_metrics_right_after_the_start(server):
    busy(server)
    break_file(server, "UPDATE tenants SET active_runs = active_runs + 1 WHERE id = 'acme'")
    api = start_again(server)
    assert differences(api) == {"slots": 1, "queue": 0}  # by itself it looks at no more than this
    assert 'pawl_doctor_differences{check="slots"} 1\n' in metrics(api)
    assert "counters differ from the runs: see pawl doctor check=slots differences=1" in server.log()
    assert api.get("/api/v1/doctor").json["ok"] is False
    assert differences(api) == {"file": 0, "objects": 0, "slots": 1, "queue": 0, "runs": 0, "jobs": 0, "approvals": 0, "entities": 0, "webhooks": 0, "idempotency": 0, "indexes": 0, "audit": 0}
    assert api.post(REPAIR).json["ok"] is True
    assert differences(api)["slots"] == 0


def test_a_sound_file_says_nothing_at_the_start(server):
    busy(server)
    assert server.stop() == 0
    assert differences(start_again(server)) == {"slots": 0, "queue": 0}
    assert "differ" not in server.log()


def test_a_finding_says_whose_and_how_many(server):
    busy(server)
    break_file(server, "UPDATE tenants SET active_runs = 9 WHERE id = 'acme';"
                       "UPDATE runs SET version = 0 WHERE num = (SELECT min(num) FROM runs)")
    api = server.start().client()
    found = checks(api.get("/api/v1/doctor").json)
    assert found["slots"]["found"] == [{"what": "active_runs of the tenant is not the number of its runs that hold a slot",
                                        "tenant": "acme", "kept": 9, "counted": 4, "repairable": True}]
    [run] = found["runs"]["found"]
    assert run["tenant"] == "acme" and run["kept"] == 0 and run["repairable"] is False
    assert api.get(f"/api/v1/runs/{run['run_id']}", tenant="acme").status == 200


def test_a_long_list_of_findings_is_cut_and_counted(server):
    api = busy(server)
    api.put("/api/v1/tenants/acme", {"max_concurrent_runs": 0})
    for i in range(150):
        assert api.start("acme").json["run"]["status"] == "queued"
    break_file(server, "DELETE FROM queue")
    api = start_again(server)
    queue = checks(api.get("/api/v1/doctor").json)["queue"]["found"]
    kinds = collections.Counter(f["what"] for f in queue)
    assert kinds["a queued run is not in its queue"] == 100
    assert differences(api)["queue"] > 150


# --- mending ---

EVERYTHING = """DELETE FROM slots; DELETE FROM scopes; DELETE FROM lines; DELETE FROM line_scopes; DELETE FROM queue; DELETE FROM holding;
    DELETE FROM run_blocks; UPDATE indexed SET through = 1000000 WHERE name = 'idempotency'; DELETE FROM timers; UPDATE tenants SET active_runs = 0, queued_runs = 0"""


DERIVED = [
    "SELECT id, active_runs, queued_runs FROM tenant_counters WHERE id <> '*' ORDER BY 1",
    "SELECT tenant, workflow_id, path, key, active_runs, queued_runs FROM scopes ORDER BY 1, 2, 3, 4",
    "SELECT s.path, s.key, x.run FROM slots x JOIN scopes s ON s.num = x.scope ORDER BY 1, 2, 3",
    "SELECT tenant, urgency, run FROM queue ORDER BY 1, 2, 3",
    "SELECT l.run, s.path, s.key FROM lines l LEFT JOIN line_scopes x ON x.line = l.num LEFT JOIN scopes s ON s.num = x.scope ORDER BY 1, 2, 3",
    "SELECT due_at, run, ordinal, generation FROM timers ORDER BY 1, 2, 3",
]


def test_everything_that_is_derived_comes_back(server):
    api = busy(server)
    api.put("/api/v1/tenants/acme", {"max_concurrent_runs": 6})
    api.post("/api/v1/jobs/claim", {"worker_id": "w", "lease_ms": 3600000}, tenant="acme")
    wait_until(lambda: rows(server.db, "SELECT 1 FROM timers t JOIN jobs j ON j.run = t.run AND j.ordinal = t.ordinal WHERE j.state = 'running'"), "the lease's timer is folded")
    assert server.stop() == 0
    before = [rows(server.db, sql) for sql in DERIVED]
    assert all(before)
    break_file(server, EVERYTHING)
    r = pawl("doctor", "--repair", "--store", server.store)
    assert r.code == 0, r
    assert [rows(server.db, sql) for sql in DERIVED] == before
    doctor_on_file(server.db)


def test_limits_hold_and_queued_runs_start_after_a_repair(server):
    busy(server)
    break_file(server, EVERYTHING)
    api = server.start().client()
    assert api.post(REPAIR).json["ok"] is True

    def counts():
        t = api.get("/api/v1/tenants/acme").json
        return t["active_runs"], t["queued_runs"]

    assert counts() == (4, 18)
    assert api.start("acme", body={"input": {}, "at_limit": "reject"}).code == "MAX_CONCURRENT_RUNS"
    done = 0
    while api.work("acme"):
        done += 1
        active, queued = counts()
        assert active == min(4, 22 - done) or queued == 0, (done, active, queued)
        assert active <= 4
    assert done == 22 and counts() == (0, 0)
    assert_healthy(api)


def test_a_repair_is_remembered_under_its_key_and_audited_once(server):
    busy(server)
    break_file(server, "UPDATE tenants SET active_runs = 7, queued_runs = 0 WHERE id = 'acme'")
    api = server.start().client()
    first = api.post(REPAIR, key="mend")
    assert first.status == 200 and first.json["repaired"] == 2 and first.json["ok"] is True
    assert set(checks(first.json)) == {"slots", "queue", "jobs", "entities", "indexes"}
    again = api.post(REPAIR, key="mend")
    assert again.json == first.json and again.header("Idempotent-Replayed") == "true"
    assert api.post(REPAIR, {"x": 1}, key="other").code == "FIELD_INVALID"
    audit = rows(server.db, "SELECT tenant, actor, target, detail FROM audit WHERE action = 'doctor.repair'")
    assert audit == [(0, "dev", "*", '{"slots":1,"queue":1,"jobs":0,"entities":0,"indexes":0,"repaired":2}')]
    assert_healthy(api)


def test_nothing_to_repair_is_no_change(server):
    api = busy(server)
    before = rows(server.db, "SELECT count(*) FROM idempotency"), rows(server.db, "SELECT count(*) FROM audit")
    r = api.post(REPAIR, key="mend")
    assert r.json["repaired"] == 0 and r.json["ok"] is True
    assert (rows(server.db, "SELECT count(*) FROM idempotency"), rows(server.db, "SELECT count(*) FROM audit")) == before


def test_a_repair_under_load_keeps_every_answer_true(server):
    """Starts and results go on around it: none is lost, and no counter is written over."""
    api = busy(server)
    api.put("/api/v1/tenants/acme", {"max_concurrent_runs": None, "at_limit": "queue"})

    def live(i):
        client = server.client()
        for n in range(15):
            if i == 0:
                write(server.db, FOLD_COUNTERS + "UPDATE tenants SET active_runs = active_runs + 3, queued_runs = queued_runs + 1 WHERE id = 'acme'")
                r = client.post(REPAIR)
                assert r.status == 200 and r.json["ok"] is True, r
            else:
                assert client.start("acme").status == 200
                client.work("acme")

    harness.together(4, live)
    client = server.client()
    client.post(REPAIR)
    assert_healthy(client)
    assert server.stop() == 0
    doctor_on_file(server.db)


# --- on the command line ---

def test_the_command_line_says_what_was_mended_and_checks_again(server):
    busy(server)
    break_file(server, "UPDATE tenants SET active_runs = 9 WHERE id = 'acme'; INSERT INTO run_blocks (tenant, num) SELECT num, 1 FROM tenants WHERE id = 'acme'")
    store = ["--store", server.store]
    r = pawl("doctor", *store)
    assert r.code == 1 and "slots: active_runs of the tenant is not" in r.out and "tenant acme, kept 9, counted 4" in r.out, r
    r = pawl("doctor", "--repair", *store)
    assert r.code == 0 and "tenant acme, kept 9, counted 4" in r.out, r
    mended, checked = r.out.split("repaired: 2\n")
    assert "indexes: the index of runs has an entry of no run, or behind its mark, tenant acme, kept 1\n" in without_shards(mended) and "slots        yes" in checked
    r = pawl("doctor", "--repair", *store)
    assert r.code == 0 and r.out.startswith("repaired: 0\n"), r


def test_what_cannot_be_mended_is_exit_code_1(server):
    busy(server)
    break_file(server, "UPDATE audit SET actor = 'somebody'; UPDATE tenants SET active_runs = 9 WHERE id = 'acme'")
    server.start()
    r = pawl("doctor", "--repair", PAWL_URL=server.url)
    assert r.code == 1 and "repaired: 1\n" in r.out and "audit: this entry or the one before it was changed, tenant acme, seq 1\n" in without_shards(r.out), r
    r = pawl("doctor", "--repair", "--json", PAWL_URL=server.url)
    assert r.code == 1 and len(r.out.splitlines()) == 2, r


def test_a_repair_of_a_tenant_that_was_counted_too_low_works_although_runs_want_to_end(server):
    """The writer would end the run as soon as it starts, and cannot: its counter is at nought."""
    api = server.client()
    api.workflow("acme", "nap", [{"name": "z", "type": "sleep", "duration_ms": 1000}])
    run = api.start("acme", "nap").json["run_id"]
    break_file(server, "UPDATE tenants SET active_runs = 0; UPDATE runs SET first_due = 1; UPDATE timers SET due_at = 1")
    r = pawl("doctor", "--repair", "--store", server.store)
    assert r.code == 0, r
    api = server.start().client()
    wait_until(lambda: api.get(f"/api/v1/runs/{run}", tenant="acme").json["status"] == "succeeded", "it ends")
    assert_healthy(api)
