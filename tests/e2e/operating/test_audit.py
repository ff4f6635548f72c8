"""The audit trail: who did what, when and from where; nothing of it can be changed without being noticed, and where."""
import json
import re

import pytest

import endpoint
import harness
from actions import begin, claim, control, task
from checks import assert_problem, without_shards
from cli import pawl
from inspect_store import doctor_on_file, rows, write
from pages import walk

ROOT = harness.ROOT_KEY
HASH = re.compile(r"[0-9a-f]{64}")
INSTANT = {"name": "t", "type": "transform", "output": 1}


def trail(api, tenant, query=""):
    return without_shards(walk(api, f"/api/v1/audit{query}", tenant))


def actions(api, tenant):
    return [e["action"] for e in trail(api, tenant)]


def verdict(api, tenant):
    r = api.get("/api/v1/audit/verify", tenant=tenant)
    assert r.status == 200, r
    return without_shards(r.json)


# --- what is in it ---

def test_who_did_what_when_and_from_where_is_written_once(api, tenant):
    before = len(trail(api, tenant))
    headers = {"X-Actor": "ann"}
    for _ in range(3):
        assert api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": 5}, tenant=tenant, key="k", headers=headers).status == 200
    [entry] = trail(api, tenant)[before:]
    assert (entry["tenant"], entry["seq"], entry["actor"], entry["peer"], entry["action"], entry["target"]) == (tenant, before + 1, "ann", "127.0.0.1", "tenant.set", tenant)
    assert entry["detail"]["max_concurrent_runs"] == 5 and HASH.fullmatch(entry["hash"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["at"])


def test_what_is_done_by_hand_is_audited_and_what_runs_by_itself_is_not(api, tenant):
    run = begin(api, tenant, task("a"), task("b"))
    for action in ("pause", "resume", "cancel"):
        assert control(api, tenant, run, action, {"reason": "because"} if action == "cancel" else None).status == 200
    again = api.post(f"/api/v1/runs/{run}/rerun", {}, tenant=tenant).json["run_id"]
    job = claim(api, tenant)[0]
    api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "NO", "retryable": False}}, tenant=tenant)
    assert api.post(f"/api/v1/dead-letters/{job['job_id']}/retry", tenant=tenant).status == 200
    schedule = {"workflow_id": "w", "cron": "0 3 * * *"}
    for _ in range(2):
        assert api.put("/api/v1/schedules/s", schedule, tenant=tenant).status == 200
    api.post("/api/v1/schedules/s/trigger", tenant=tenant)
    api.delete("/api/v1/schedules/s", tenant=tenant)
    bulk = api.post("/api/v1/runs:bulk", {"action": "cancel", "filter": {}}, tenant=tenant).json
    api.delete("/api/v1/workflows/w", tenant=tenant)
    assert actions(api, tenant) == [
        "tenant.set", "workflow.put", "run.pause", "run.resume", "run.cancel", "run.rerun", "dead_letter.retry", "schedule.put", "schedule.trigger", "schedule.delete",
        *["run.cancel"] * bulk["changed"], "workflow.archive"] and bulk["changed"] == 2
    by_action = {e["action"]: e for e in trail(api, tenant, "?action=run.*")}
    assert by_action["run.rerun"]["target"] == run and by_action["run.rerun"]["detail"]["new_run_id"] == again
    assert [e["detail"] for e in trail(api, tenant, "?action=run.cancel") if e["target"] == run] == [{"workflow_id": "w", "reason": "because"}]
    assert verdict(api, tenant)["ok"]


def test_what_changes_nothing_or_is_refused_is_not_audited(api, tenant):
    run = begin(api, tenant, INSTANT)
    count = len(trail(api, tenant))
    assert api.workflow(tenant, "w", [INSTANT])["created"] is False
    assert control(api, tenant, run, "cancel").status == 409
    assert control(api, tenant, run, "resume").status == 409
    assert api.put(f"/api/v1/tenants/{tenant}", {"weight": -1}, tenant=tenant).status == 400
    assert api.put("/api/v1/schedules/s", {"workflow_id": "none", "cron": "* * * * *"}, tenant=tenant).status == 404
    assert len(trail(api, tenant)) == count


def test_keys_are_audited_without_their_secret():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as server:
        root = server.client(headers={"Authorization": f"Bearer {ROOT}"})
        made = root.post("/api/v1/keys", {"tenant": "acme", "role": "admin"}).json
        everywhere = root.post("/api/v1/keys", {"tenant": "*", "role": "worker"}).json
        admin = server.client(headers={"X-API-Key": made["key"]})
        assert actions(admin, None) == ["key.create"], "an admin sees the own tenant's"
        assert root.delete(f"/api/v1/keys/{made['id']}", tenant="acme").status == 200
        assert [(e["action"], e["target"]) for e in trail(root, "acme")][1] == ("key.revoke", made["id"])
        assert [(e["tenant"], e["action"]) for e in trail(root, "*")] == [("*", "key.create")], "keys for all tenants are in the server's own"
        text = json.dumps(trail(root, "acme") + trail(root, "*"))
        assert made["key"] not in text and everywhere["key"] not in text
        assert_problem(admin.get("/api/v1/audit"), 401)


# --- lists ---

def test_the_trail_can_be_filtered_and_walked_in_both_directions(api, tenant):
    for n in range(30):
        api.put(f"/api/v1/tenants/{tenant}", {"weight": n + 2}, tenant=tenant, headers={"X-Actor": "ann" if n % 3 else "bob"})
    whole = trail(api, tenant)
    assert [e["seq"] for e in whole] == list(range(1, 32))
    assert trail(api, tenant, "?limit=7") == whole
    assert trail(api, tenant, "?order=newest&limit=7") == whole[::-1]
    assert trail(api, tenant, "?actor=bob&limit=3") == [e for e in whole if e["actor"] == "bob"]
    assert trail(api, tenant, "?after=20&limit=4") == whole[20:]
    assert trail(api, tenant, "?action=tenant.*&actor=ann&after=25") == [e for e in whole[25:] if e["actor"] == "ann"]
    assert trail(api, tenant, "?action=tenant") == [] and trail(api, tenant, "?action=key.*") == []


@pytest.mark.parametrize("query", ["?order=up", "?after=-1", "?after=x", "?action=a**", "?action=", "?order=newest&after=3", "?cursor=x", "?since=1"])
def test_a_query_that_means_nothing_is_400(api, tenant, query):
    assert_problem(api.get(f"/api/v1/audit{query}", tenant=tenant), 400)


def test_the_trail_of_a_tenant_that_is_not_there_is_empty_or_404(api):
    assert trail(api, "nobody-here") == [] and verdict(api, "nobody-here") == {"ok": True, "checked": 0, "broken": None, "head": None}
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as server:
        root = server.client(headers={"Authorization": f"Bearer {ROOT}"})
        for path in ("audit", "audit/verify", "audit/export"):
            assert_problem(root.get(f"/api/v1/{path}", tenant="nobody-here"), 404, "TENANT_NOT_FOUND")


# --- export ---

def lines(text):
    assert text.endswith("\n") or not text
    return [without_shards(json.loads(line)) for line in text.splitlines()]


def test_the_export_is_the_whole_trail_as_json_lines(api, dev_server, tenant):
    for n in range(300):
        api.put(f"/api/v1/tenants/{tenant}", {"weight": n + 2, "name": "n" * 900}, tenant=tenant)
    whole = trail(api, tenant, "?limit=200")
    r = api.get("/api/v1/audit/export", tenant=tenant)
    assert r.header("Content-Type") == "application/x-ndjson" and len(r.raw) > 300_000
    assert lines(r.raw.decode()) == whole
    assert lines(api.get("/api/v1/audit/export?after=290&action=tenant.*", tenant=tenant).raw.decode()) == whole[290:]
    assert lines(api.get("/api/v1/audit/export?actor=nobody", tenant=tenant).raw.decode()) == []
    env = {"PAWL_URL": dev_server.url}
    assert lines(pawl("audit", "export", "--tenant", tenant, **env).out) == whole
    assert lines(pawl("audit", "export", "--tenant", tenant, "--after", "299", **env).out) == whole[299:]
    assert_problem(api.get("/api/v1/audit/export?limit=3", tenant=tenant), 400)


def test_an_export_that_nobody_reads_on_holds_up_nobody(api, dev_server, tenant):
    for n in range(200):
        api.put(f"/api/v1/tenants/{tenant}", {"weight": n + 2, "name": "n" * 1000}, tenant=tenant)
    conn = endpoint.http_connection(dev_server.port)
    conn.request("GET", "/api/v1/audit/export", headers={"X-Tenant-ID": tenant})
    reply = conn.getresponse()
    assert reply.read(10)
    assert api.put(f"/api/v1/tenants/{tenant}", {"weight": 1}, tenant=tenant).status == 200
    conn.close()
    assert verdict(api, tenant)["ok"]


# --- tampering ---

TAMPERING = [
    ("UPDATE audit SET actor = 'nobody' WHERE {} AND seq = 3", 3, "changed"),
    ("UPDATE audit SET detail = replace(detail, '\"weight\":4', '\"weight\":9') WHERE {} AND seq = 4", 4, "changed"),
    ("DELETE FROM audit WHERE {} AND seq = 2", 2, "missing"),
    ("DELETE FROM audit WHERE {} AND seq = 6", 6, "missing"),
    ("DELETE FROM audit WHERE {}", 1, "missing"),
    ("DELETE FROM audit_heads WHERE {}", 1, "added"),
    ("UPDATE audit SET seq = 99 WHERE {0} AND seq = 3; UPDATE audit SET seq = 3 WHERE {0} AND seq = 4; UPDATE audit SET seq = 4 WHERE {0} AND seq = 99", 3, "changed"),
]


@pytest.mark.parametrize("sql,seq,what", TAMPERING)
def test_what_is_done_to_the_file_is_found_with_its_place(sql, seq, what):
    with harness.server() as server:
        api = server.client()
        for tenant in ("one", "two"):
            for n in range(6):
                assert api.put(f"/api/v1/tenants/{tenant}", {"weight": n + 1}, tenant=tenant).status == 200
        assert verdict(api, "two") == {"ok": True, "checked": 6, "broken": None, "head": {"seq": 6, "hash": trail(api, "two")[-1]["hash"]}}
        kept = {e["seq"]: e["at"] for e in trail(api, "two")}
        server.stop()
        write(server.db, sql.format("tenant = (SELECT num FROM tenants WHERE id = 'two')"))
        api = server.start().client()
        found = verdict(api, "two")
        assert found["ok"] is False and {**found["broken"], "at": 0} == {"tenant": "two", "seq": seq, "at": 0, "what": what}
        assert found["broken"]["at"] is None if what == "missing" else found["broken"]["at"] in kept.values()
        assert verdict(api, "*")["broken"] == found["broken"], "among all chains too"
        assert verdict(api, "one")["ok"], "the other tenant's is whole"
        env = {"PAWL_URL": server.url}
        r = pawl("audit", "verify", "--tenant", "two", **env)
        assert r.code == 1 and f"{what}, tenant two, seq {seq}" in r.out, r
        assert pawl("audit", "verify", "--tenant", "one", **env).code == 0
        check = next(c for c in api.get("/api/v1/doctor", tenant="one").json["checks"] if c["name"] == "audit")
        assert check["ok"] is False and (check["found"][0]["tenant"], check["found"][0]["seq"]) == ("two", seq)
        r = pawl("doctor", **env)
        assert r.code == 1 and f"tenant two, seq {seq}\n" in without_shards(r.out), r
        # Whatever is written from now on does not cover it up.
        assert api.put("/api/v1/tenants/two", {"weight": 50}, tenant="two").status == 200
        if what != "added":
            assert verdict(api, "two")["broken"]["seq"] == seq


@pytest.mark.sqlite("a migration of before there was PostgreSQL")
def test_an_earlier_store_takes_its_trail_with_it():
    """The ends of the chains are kept since schema 4; a file of before has none."""
    with harness.server() as server:
        api = server.client()
        for n in range(3):
            api.put("/api/v1/tenants/t", {"weight": n + 1}, tenant="t")
        server.stop()
        heads = rows(server.db, "SELECT tenant, seq, hash FROM audit_heads")
        migration = (harness.ROOT / "src/store/schema/004_decisions.sqlite.sql").read_text()
        statement = migration[migration.index("INSERT INTO audit_heads"):].split(";")[0]
        write(server.db, f"DELETE FROM audit_heads; {statement};")
        assert rows(server.db, "SELECT tenant, seq, hash FROM audit_heads") == heads
        doctor_on_file(server.db)
        server.start()


# --- the command line ---

def test_the_command_lists_newest_first(dev_server, api, tenant):
    for n in range(5):
        api.put(f"/api/v1/tenants/{tenant}", {"weight": n + 2}, tenant=tenant, headers={"X-Actor": "ann"})
    env = {"PAWL_URL": dev_server.url}
    r = pawl("audit", "list", "--tenant", tenant, "--limit", "2", **env)
    assert r.code == 0 and [line.split()[0] for line in r.out.splitlines()] == ["SEQ", "6", "5"], r
    r = pawl("audit", "list", "--tenant", tenant, "--actor", "dev", "--json", **env)
    assert [e["seq"] for e in json.loads(r.out)["items"]] == [1], r
    assert pawl("audit", "verify", "--tenant", tenant, **env).out == "6 entries checked: the chain is whole\n"


def test_the_command_tells_the_events_of_a_tenant():
    with harness.server() as server:
        api = server.client()
        run = begin(api, "t", INSTANT)
        r = pawl("events", "--tenant", "t", "--after", "0-0", "--type", "run.*", "--count", "2", "--json", PAWL_URL=server.url)
        followed = [json.loads(line) for line in r.out.splitlines()]
        assert r.code == 0 and [(e["type"], e["subject"]) for e in followed] == [("run.created", run), ("run.succeeded", run)], r
        r = pawl("events", "--tenant", "t", "--after", followed[0]["pawlplace"], "--count", "1", PAWL_URL=server.url)
        assert r.code == 0 and "job.succeeded" in r.out, r
        r = pawl("events", "--tenant", "t", "--after", "nonsense", PAWL_URL=server.url)
        assert r.code == 1 and "BAD_REQUEST" in r.err, r
        url = server.url
        server.stop()
        assert pawl("events", "--tenant", "t", PAWL_URL=url).code == 3
        server.start()
