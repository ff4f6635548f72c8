"""Webhooks: which events are sent where, how they are signed, what is tried again, and what survives kill -9."""
import base64
import collections
import hashlib
import hmac
import json

import pytest

import foreign
import harness
from checks import assert_problem
from cli import pawl
from inspect_store import rows
from pages import walk
from prometheus import metrics

ROOT_KEY = harness.ROOT_KEY


@pytest.fixture
def api(calling_server):
    return calling_server.client()


def create(api, tenant, url, events=("*",), **more):
    r = api.post("/api/v1/webhooks", {"url": url, "events": list(events), **more}, tenant=tenant)
    assert r.status == 200, r
    return r.json


def deliveries(api, tenant, hook):
    return walk(api, f"/api/v1/webhooks/{hook['id']}/deliveries?limit=200", tenant)


def show(api, tenant, hook):
    r = api.get(f"/api/v1/webhooks/{hook['id']}", tenant=tenant)
    assert r.status == 200, r
    return r.json


def all_are(api, tenant, hook, state, count):
    """Waits until there are so many deliveries, all in this state."""
    def look():
        found = deliveries(api, tenant, hook)
        return found if len(found) == count and {d["state"] for d in found} == {state} else None
    return harness.wait_until(look, f"{count} deliveries are {state}: {collections.Counter(d['state'] for d in deliveries(api, tenant, hook))}", 60)


def ids(sent):
    return [s.headers["webhook-id"] for s in sent]


def signed_by(secret, sent):
    """Is one of the signatures made with the secret? By hand, from the words of the specification."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = b".".join([sent.headers["webhook-id"].encode(), sent.headers["webhook-timestamp"].encode(), sent.body])
    wanted = "v1," + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()
    return wanted in sent.headers["webhook-signature"].split(" ")


def timeline(api, tenant, run):
    return api.get(f"/api/v1/runs/{run}/events?limit=200", tenant=tenant).json["items"]


def run_one(api, tenant, wid="hold"):
    run = api.start(tenant, wid).json["run_id"]
    assert api.work(tenant)
    return run


# --- what arrives ---

def test_every_event_arrives_once_and_in_the_order_of_its_run(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (200, b"")))
    api.workflow(tenant)
    runs = [api.start(tenant).json["run_id"] for _ in range(20)]
    while api.work(tenant):
        pass
    event_ids = [f"{run}:{event['seq']}" for run in runs for event in timeline(api, tenant, run)]
    all_are(api, tenant, hook, "delivered", len(event_ids))
    came = ids(receiver.at("/hook"))
    assert sorted(came) == sorted(event_ids)
    for run in runs:
        assert [i for i in came if i.startswith(run)] == [i for i in event_ids if i.startswith(run)]


def test_a_delivery_is_what_the_timeline_says(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (204, b"")))
    api.workflow(tenant)
    run = run_one(api, tenant)
    events = {f"{run}:{e['seq']}": e for e in timeline(api, tenant, run)}
    all_are(api, tenant, hook, "delivered", len(events))
    for sent in receiver.at("/hook"):
        event = events[sent.headers["webhook-id"]]
        assert sent.method == "POST" and sent.headers["Content-Type"].split(";")[0] == "application/cloudevents+json"
        assert sent.headers["User-Agent"].startswith("pawl/")
        body = sent.json
        assert (body["id"], body["type"], body["time"], body["subject"]) == (sent.headers["webhook-id"], event["type"], event["at"], run)
        assert body["source"] == f"/pawl/{tenant}/runs/{run}" and body["data"]["run_id"] == run and body["data"]["seq"] == event["seq"]
        assert signed_by(hook["secret"], sent)


def test_patterns_choose_events(api, tenant, receiver):
    hooks = {path: create(api, tenant, receiver.answers(path, (200, b"")), events)
             for path, events in (("/all", ["*"]), ("/jobs", ["job.*"]), ("/ends", ["run.succeeded", "run.failed"]), ("/mine", ["order.*"]), ("/none", ["run"]))}
    api.workflow(tenant, steps=[{"name": "a", "type": "task", "handler": "h"}, {"name": "e", "type": "emit", "event": "order.paid", "payload": {"n": 1}}])
    run = run_one(api, tenant)
    types = [e["type"] for e in timeline(api, tenant, run)]
    all_are(api, tenant, hooks["/all"], "delivered", len(types))
    all_are(api, tenant, hooks["/jobs"], "delivered", sum(t.startswith("job.") for t in types))
    all_are(api, tenant, hooks["/ends"], "delivered", 1)
    all_are(api, tenant, hooks["/mine"], "delivered", 1)
    came = {path: [s.json["type"] for s in receiver.at(path)] for path in hooks}
    assert collections.Counter(came["/all"]) == collections.Counter("order.paid" if t == "event.emitted" else t for t in types)
    assert came["/jobs"] == [t for t in types if t.startswith("job.")] and came["/ends"] == ["run.succeeded"]
    assert came["/mine"] == ["order.paid"] and receiver.at("/mine")[0].json["data"]["payload"] == {"n": 1} and came["/none"] == []


def test_tenants_get_their_own_events_only(api, receiver):
    mine, theirs = api.tenant(), api.tenant()
    hook = create(api, mine, receiver.answers("/mine", (200, b"")))
    create(api, theirs, receiver.answers("/theirs", (200, b"")))
    api.workflow(mine)
    run = run_one(api, mine)
    all_are(api, mine, hook, "delivered", len(timeline(api, mine, run)))
    assert receiver.at("/theirs") == []


def test_a_test_event_goes_to_one_webhook(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/one", (200, b"")), ["run.failed"])
    create(api, tenant, receiver.answers("/other", (200, b"")), ["*"])
    made = api.post(f"/api/v1/webhooks/{hook['id']}/test", {}, tenant=tenant).json
    assert made["event_type"] == "webhook.test" and made["state"] == "pending"
    all_are(api, tenant, hook, "delivered", 1)
    sent = receiver.at("/one")[0]
    assert sent.json["type"] == "webhook.test" and signed_by(hook["secret"], sent) and receiver.at("/other") == []


# --- foreign clients ---

def test_foreign_clients_take_what_arrives(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (200, b"")))
    api.workflow(tenant, steps=[{"name": "a", "type": "task", "handler": "h"},
                                {"name": "e", "type": "emit", "event": "order.paid", "payload": {"text": "größer \u2028 \"quoted\" \u0001", "n": 1.5, "big": 2**53 - 1}}])
    runs = [run_one(api, tenant) for _ in range(3)]
    count = sum(len(timeline(api, tenant, run)) for run in runs)
    all_are(api, tenant, hook, "delivered", count)
    api.post(f"/api/v1/webhooks/{hook['id']}/test", {}, tenant=tenant)
    all_are(api, tenant, hook, "delivered", count + 1)
    sent = receiver.at("/hook")
    forged = [{"headers": dict(s.headers.items()), "body": s.body.decode()} for s in sent[:1]]
    forged[0]["body"] = forged[0]["body"].replace("run.created", "run.deleted")
    question = {"secrets": [hook["secret"], "whsec_" + base64.b64encode(b"x" * 32).decode()],
                "deliveries": [{"headers": {k.lower(): v for k, v in s.headers.items()}, "body": s.body.decode()} for s in sent] +
                              [{"headers": {k.lower(): v for k, v in f["headers"].items()}, "body": f["body"]} for f in forged]}
    verdicts = foreign.judge("webhooks.mjs", question)
    assert len(verdicts) == count + 2
    for s, verdict in zip(sent, verdicts):
        assert verdict["signatures"] == [True, "No matching signature found"], verdict
        assert verdict["event"]["valid"] is True, verdict
        assert {k: verdict["event"][k] for k in ("id", "type", "source", "subject", "time", "data")} == {k: s.json[k] for k in ("id", "type", "source", "subject", "time", "data")}
    assert verdicts[-1]["signatures"] == ["No matching signature found"] * 2


def test_a_rotated_secret_and_the_old_one_both_verify(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (200, b"")))
    rotated = api.post(f"/api/v1/webhooks/{hook['id']}/rotate", {}, tenant=tenant).json
    assert rotated["secret"] != hook["secret"] and rotated["old_secret_until"]
    api.post(f"/api/v1/webhooks/{hook['id']}/test", {}, tenant=tenant)
    all_are(api, tenant, hook, "delivered", 1)
    again = api.post(f"/api/v1/webhooks/{hook['id']}/rotate", {"old_secret_s": 0}, tenant=tenant).json
    assert again["old_secret_until"] is None
    api.post(f"/api/v1/webhooks/{hook['id']}/test", {}, tenant=tenant)
    all_are(api, tenant, hook, "delivered", 2)
    question = {"secrets": [hook["secret"], rotated["secret"], again["secret"]],
                "deliveries": [{"headers": {k.lower(): v for k, v in s.headers.items()}, "body": s.body.decode()} for s in receiver.at("/hook")]}
    no = "No matching signature found"
    assert [v["signatures"] for v in foreign.judge("webhooks.mjs", question)] == [[True, True, no], [no, no, True]]


# --- receivers that are not well ---

def test_a_failed_attempt_is_made_again_under_the_same_id(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (500, b"sorry"), (200, b"")), ["run.created"])
    api.workflow(tenant)
    run = api.start(tenant).json["run_id"]
    waiting = harness.wait_until(lambda: [d for d in deliveries(api, tenant, hook) if d["attempts"] == 1 and d["state"] == "pending"], "the first attempt fails")[0]
    assert (waiting["last_status"], waiting["event_id"]) == (500, f"{run}:1") and waiting["next_attempt_at"] and "sorry" not in json.dumps(waiting)
    assert show(api, tenant, hook)["failing_since"]
    done = all_are(api, tenant, hook, "delivered", 1)[0]
    assert done["attempts"] == 2 and done["last_status"] == 200 and done["last_error"] is None
    first, second = receiver.at("/hook")
    assert first.headers["webhook-id"] == second.headers["webhook-id"] and first.body == second.body
    assert signed_by(hook["secret"], second) and int(second.headers["webhook-timestamp"]) > int(first.headers["webhook-timestamp"])
    assert show(api, tenant, hook)["failing_since"] is None


def test_gone_disables_the_webhook_until_somebody_enables_it(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (410, b"")), ["run.created"])
    api.workflow(tenant)
    api.start(tenant)
    all_are(api, tenant, hook, "failed", 1)
    shown = show(api, tenant, hook)
    assert shown["enabled"] is False and shown["disabled_at"] and "410" in shown["disabled_reason"]
    api.start(tenant)
    receiver.answers("/hook", (200, b""))
    r = api.put(f"/api/v1/webhooks/{hook['id']}", {"enabled": True}, tenant=tenant)
    assert r.json["enabled"] is True and r.json["disabled_reason"] is None
    run = api.start(tenant).json["run_id"]
    harness.wait_until(lambda: len(receiver.at("/hook")) == 2, "it is sent again")
    assert ids(receiver.at("/hook"))[1] == f"{run}:1"


def test_a_redirect_is_not_followed(api, tenant, receiver):
    elsewhere = receiver.answers("/elsewhere", (200, b""))
    hook = create(api, tenant, receiver.answers("/hook", (307, b"", {"Location": elsewhere})), ["run.created"])
    api.workflow(tenant)
    api.start(tenant)
    harness.wait_until(lambda: [d for d in deliveries(api, tenant, hook) if d["last_status"] == 307], "the redirect is an answer")
    assert receiver.at("/elsewhere") == []


def test_a_slow_receiver_does_not_delay_another(api, tenant, receiver):
    slow = create(api, tenant, receiver.on("/slow", lambda handler, sent: (receiver.gate.wait(), handler.answer(200))), ["run.created"])
    fast = create(api, tenant, receiver.answers("/fast", (200, b"")), ["run.created"])
    api.workflow(tenant)
    for _ in range(50):
        api.start(tenant)
    all_are(api, tenant, fast, "delivered", 50)
    assert 1 <= len(receiver.at("/slow")) <= 4 and not receiver.gate.is_set()
    receiver.gate.set()
    all_are(api, tenant, slow, "delivered", 50)
    assert len(set(ids(receiver.at("/slow")))) == 50


def test_a_delivery_can_be_sent_again_by_hand(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (200, b"")), ["run.created"])
    api.workflow(tenant)
    api.start(tenant)
    done = all_are(api, tenant, hook, "delivered", 1)[0]
    path = f"/api/v1/webhooks/{hook['id']}/deliveries/{done['id']}/redeliver"
    for _ in range(2):  # the same request again is no third one
        r = api.post(path, {}, tenant=tenant, key="again")
        assert r.status == 200 and r.json["id"] == done["id"] and r.json["state"] == "pending", r
    harness.wait_until(lambda: deliveries(api, tenant, hook)[0]["attempts"] == 2 and deliveries(api, tenant, hook)[0]["state"] == "delivered", "it is sent again")
    first, second = receiver.at("/hook")
    assert first.headers["webhook-id"] == second.headers["webhook-id"] and first.body == second.body


def test_private_addresses_are_refused_without_the_flag(receiver):
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT_KEY}) as s:
        api = s.client(headers={"X-API-Key": ROOT_KEY})
        tenant = api.tenant()
        hook = create(api, tenant, receiver.answers("/hook", (200, b"")), ["run.created"])
        api.workflow(tenant)
        api.start(tenant)
        refused = harness.wait_until(lambda: [d for d in deliveries(api, tenant, hook) if d["attempts"] == 1 and d["last_error"]], "the attempt is refused")[0]
        assert "--allow-private-addresses" in refused["last_error"]
        assert refused["last_error"].startswith("ADDRESS_REFUSED") and refused["last_status"] is None and refused["state"] == "pending"
        assert receiver.sent == []


def test_a_development_server_sends_to_loopback(receiver):
    with harness.server() as s:
        api = s.client()
        tenant = api.tenant()
        hook = create(api, tenant, receiver.answers("/hook", (200, b"")), ["run.created"])
        api.workflow(tenant)
        api.start(tenant)
        harness.wait_until(lambda: [d for d in deliveries(api, tenant, hook) if d["state"] == "delivered"], "it is delivered")


# --- kill -9 ---

def test_events_arrive_although_the_server_is_killed(receiver):
    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        hook = create(api, tenant, receiver.on("/hook", lambda handler, sent: handler.answer(200)), ["run.created", "run.succeeded"])
        api.workflow(tenant)
        runs = []
        for life in range(4):
            runs += [api.start(tenant).json["run_id"] for _ in range(25)]
            for _ in range(10):
                assert api.work(tenant)
            harness.wait_until(lambda: len(receiver.sent) > life * 30, "some have been sent")
            s.kill()  # between any two of: commit, fan-out, send, mark
            s.start()
            api = s.client()
        while api.work(tenant):
            pass
        event_ids = {f"{run}:{e['seq']}" for run in runs for e in timeline(api, tenant, run) if e["type"] in ("run.created", "run.succeeded")}
        assert len(event_ids) == 200
        log = all_are(api, tenant, hook, "delivered", 200)
        assert {d["event_id"] for d in log} == event_ids
        came = collections.Counter(ids(receiver.sent))
        assert set(came) == event_ids  # each at least once, nothing else
        bodies = collections.defaultdict(set)
        for sent in receiver.sent:
            assert signed_by(hook["secret"], sent)
            bodies[sent.headers["webhook-id"]].add(sent.body)
        assert all(len(b) == 1 for b in bodies.values())
        assert sum(came.values()) - 200 <= 4 * 4  # again is only what was under way: four at a time


def test_what_was_sent_and_not_marked_is_sent_again_with_the_same_id(receiver):
    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        hook = create(api, tenant, receiver.on("/hook", lambda handler, sent: (receiver.gate.wait(), handler.answer(200))), ["run.created"])
        api.workflow(tenant)
        api.start(tenant)
        harness.wait_until(lambda: len(receiver.sent) == 1, "it is sent")
        s.kill()
        receiver.gate.set()
        s.start()
        api = s.client()
        done = all_are(api, tenant, hook, "delivered", 1)[0]
        assert done["attempts"] == 2
        assert len(receiver.sent) == 2 and len(set(ids(receiver.sent))) == 1


def test_a_server_that_is_stopped_gives_back_what_it_was_sending(receiver):
    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        hook = create(api, tenant, receiver.on("/hook", lambda handler, sent: (receiver.gate.wait(), handler.answer(200))), ["run.created"])
        api.workflow(tenant)
        api.start(tenant)
        harness.wait_until(lambda: len(receiver.sent) == 1, "it is sent")
        assert s.stop() == 0
        receiver.gate.set()
        s.start()
        assert all_are(s.client(), tenant, hook, "delivered", 1)[0]["attempts"] == 2


# --- secrets ---

def test_a_secret_is_shown_once_and_nowhere_else(receiver):
    with harness.server("--allow-private-addresses", "--log", "json") as s:
        api = s.client()
        tenant = api.tenant()
        body = {"url": receiver.answers("/hook", (200, b"")), "events": ["*"]}
        made = api.post("/api/v1/webhooks", body, tenant=tenant, key="make")
        rotated = api.post(f"/api/v1/webhooks/{made.json['id']}/rotate", {}, tenant=tenant, key="rotate")
        secrets = [r.json["secret"] for r in (made, rotated)]
        assert len(set(secrets)) == 2 and all(len(base64.b64decode(x.removeprefix("whsec_"), validate=True)) == 32 for x in secrets)
        replays = [api.post("/api/v1/webhooks", body, tenant=tenant, key="make"), api.post(f"/api/v1/webhooks/{made.json['id']}/rotate", {}, tenant=tenant, key="rotate")]
        assert [r.header("Idempotent-Replayed") for r in replays] == ["true", "true"]
        api.workflow(tenant)
        run_one(api, tenant)
        hook = made.json
        api.put(f"/api/v1/webhooks/{hook['id']}", {"description": "d"}, tenant=tenant)
        harness.wait_until(lambda: receiver.at("/hook"), "something is sent")
        seen = [r.raw.decode() for r in replays]
        seen += [api.get(path, tenant=tenant).raw.decode() for path in
                 ("/api/v1/webhooks", f"/api/v1/webhooks/{hook['id']}", f"/api/v1/webhooks/{hook['id']}/deliveries", "/api/v1/audit", "/api/v1/idempotency-keys/make", "/metrics")]
        s.stop()
        seen.append(s.log())
        for table in ("audit", "idempotency", "events", "deliveries", "feed"):
            seen.append(repr(rows(s.db, f"SELECT * FROM {table}")))
        for secret in secrets:
            raw = base64.b64decode(secret.removeprefix("whsec_"))
            for form in (secret, secret.removeprefix("whsec_"), raw.hex(), repr(raw)[2:-1]):
                assert all(form not in text for text in seen)
        s.start()


# --- changing and refusing ---

def test_a_webhook_can_be_changed_and_deleted(api, tenant, receiver):
    hook = create(api, tenant, receiver.answers("/hook", (200, b"")), ["run.*"], description="for the ledger")
    assert "secret" in hook and "secret" not in show(api, tenant, hook)
    changed = api.put(f"/api/v1/webhooks/{hook['id']}", {"url": receiver.answers("/new", (200, b"")), "events": ["job.*", "run.failed"], "enabled": False}, tenant=tenant).json
    assert changed["events"] == ["job.*", "run.failed"] and changed["url"].endswith("/new") and changed["description"] == "for the ledger"
    assert changed["enabled"] is False and changed["disabled_reason"]
    assert [h["id"] for h in walk(api, "/api/v1/webhooks?limit=1", tenant)] == [hook["id"]]
    assert api.delete(f"/api/v1/webhooks/{hook['id']}", tenant=tenant).json == {"id": hook["id"], "deleted": True}
    for r in (api.get(f"/api/v1/webhooks/{hook['id']}", tenant=tenant), api.delete(f"/api/v1/webhooks/{hook['id']}", tenant=tenant),
              api.get(f"/api/v1/webhooks/{hook['id']}/deliveries", tenant=tenant), api.post(f"/api/v1/webhooks/{hook['id']}/rotate", {}, tenant=tenant)):
        assert_problem(r, 404, "WEBHOOK_NOT_FOUND")
    assert api.get("/api/v1/webhooks", tenant=tenant).json["items"] == []


@pytest.mark.parametrize("body", [
    {}, {"url": "http://a.test/"}, {"events": ["*"]}, {"url": "http://a.test/", "events": []}, {"url": "http://a.test/", "events": "*"},
    {"url": "http://a.test/", "events": [1]}, {"url": "http://a.test/", "events": ["run.*.x"]}, {"url": "http://a.test/", "events": ["*run"]},
    {"url": "http://a.test/", "events": ["a,b"]}, {"url": "http://a.test/", "events": ["x"] * 33}, {"url": "ftp://a.test/", "events": ["*"]},
    {"url": "http://u:p@a.test/", "events": ["*"]}, {"url": "a.test", "events": ["*"]}, {"url": "http://a.test/" + "x" * 3000, "events": ["*"]},
    {"url": "file:///etc/passwd", "events": ["*"]}, {"url": 1, "events": ["*"]}, {"url": "http://a.test/", "events": ["*"], "secret": "whsec_AAAA"},
])
def test_what_makes_no_webhook_is_refused(api, tenant, body):
    assert_problem(api.post("/api/v1/webhooks", body, tenant=tenant), 400, "FIELD_INVALID")
    assert api.get("/api/v1/webhooks", tenant=tenant).json["items"] == []


def test_a_tenant_has_twenty_webhooks_at_most(api, tenant):
    for _ in range(20):
        create(api, tenant, "http://a.test/")
    assert_problem(api.post("/api/v1/webhooks", {"url": "http://a.test/", "events": ["*"]}, tenant=tenant), 409, "WEBHOOK_LIMIT_REACHED", retryable=False)


def test_another_tenants_webhook_is_404(api, tenant):
    hook = create(api, tenant, "http://a.test/")
    other = api.tenant()
    for r in (api.get(f"/api/v1/webhooks/{hook['id']}", tenant=other), api.put(f"/api/v1/webhooks/{hook['id']}", {}, tenant=other),
              api.delete(f"/api/v1/webhooks/{hook['id']}", tenant=other), api.post(f"/api/v1/webhooks/{hook['id']}/test", {}, tenant=other)):
        assert_problem(r, 404, "WEBHOOK_NOT_FOUND")
    assert_problem(api.post(f"/api/v1/webhooks/{hook['id']}/deliveries/{hook['id']}/redeliver", {}, tenant=tenant), 404, "DELIVERY_NOT_FOUND")


def test_changes_are_audited(receiver):
    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        hook = create(api, tenant, receiver.answers("/hook", (410, b"")))
        api.put(f"/api/v1/webhooks/{hook['id']}", {"description": "d"}, tenant=tenant)
        api.post(f"/api/v1/webhooks/{hook['id']}/rotate", {}, tenant=tenant)
        api.post(f"/api/v1/webhooks/{hook['id']}/test", {}, tenant=tenant)
        done = all_are(api, tenant, hook, "failed", 1)[0]
        api.post(f"/api/v1/webhooks/{hook['id']}/deliveries/{done['id']}/redeliver", {}, tenant=tenant)
        api.delete(f"/api/v1/webhooks/{hook['id']}", tenant=tenant)
        s.stop()
        entries = rows(s.db, "SELECT action, actor, target FROM audit WHERE action LIKE 'webhook.%' ORDER BY seq")
        assert entries == [("webhook.create", "dev", hook["id"]), ("webhook.set", "dev", hook["id"]), ("webhook.rotate", "dev", hook["id"]),
                           ("webhook.disable", "pawl", hook["id"]), ("webhook.redeliver", "dev", done["id"]), ("webhook.delete", "dev", hook["id"])]
        s.start()
        assert all(c["ok"] for c in s.client().get("/api/v1/doctor").json["checks"])


def test_metrics_tell_of_deliveries(receiver):
    with harness.server("--allow-private-addresses") as s:
        api = s.client()
        tenant = api.tenant()
        good = create(api, tenant, receiver.answers("/good", (200, b"")), ["run.created"])
        bad = create(api, tenant, receiver.answers("/bad", (500, b"")), ["run.created"])
        create(api, tenant, receiver.answers("/gone", (410, b"")), ["run.created"])
        api.workflow(tenant)
        api.start(tenant)
        all_are(api, tenant, good, "delivered", 1)
        harness.wait_until(lambda: show(api, tenant, bad)["failing_since"], "one fails")
        wanted = ['pawl_webhook_attempts_total{outcome="delivered"} 1', 'pawl_webhook_attempts_total{outcome="retried"} 1', 'pawl_webhook_attempts_total{outcome="gone"} 1',
                  "pawl_webhook_deliveries_waiting 1", 'pawl_webhooks{state="enabled"} 1', 'pawl_webhooks{state="failing"} 1', 'pawl_webhooks{state="disabled"} 1']
        harness.wait_until(lambda: set(wanted) <= set(metrics(api).splitlines()), "the metrics say so")


# --- the command line ---

@pytest.fixture
def run(calling_server, tenant):
    """The command with this test's server and tenant in its environment."""
    return lambda *args: pawl(*args, PAWL_URL=calling_server.url, PAWL_TENANT=tenant)


def test_a_webhook_by_the_command_line(run, api, tenant, receiver):
    url = receiver.answers("/hook", (200, b""))
    made = run("webhook", "create", "--to", url, "--event", "run.*", "--event", "job.failed", "--description", "d", "--idempotency-key", "k")
    secret, hid = made.out.strip(), made.err.split()[1].rstrip(".")
    assert made.code == 0 and secret.startswith("whsec_") and made.out.count("\n") == 1 and "only this once" in made.err, made
    again = run("webhook", "create", "--to", url, "--event", "run.*", "--event", "job.failed", "--description", "d", "--idempotency-key", "k")
    assert again.code == 0 and again.out == "" and hid in again.err and "rotate" in again.err, again
    shown = run("webhook", "show", hid, "--json").json
    assert (shown["url"], shown["events"], shown["description"], shown["enabled"]) == (url, ["run.*", "job.failed"], "d", True)
    rows = run("webhook", "list").rows
    assert rows[0][:3] == ["ID", "URL", "EVENTS"] and rows[1][:2] == [hid, url] and len(rows) == 2
    rotated = run("webhook", "rotate", hid, "--old-secret-s", "0")
    assert rotated.code == 0 and rotated.out.startswith("whsec_") and rotated.out.strip() != secret
    tested = run("webhook", "test", hid)
    did = tested.out.split()[0]
    assert tested.out.split()[1] == "pending"
    harness.wait_until(lambda: run("webhook", "deliveries", hid).rows[1][3] == "delivered", "the test event is delivered")
    assert signed_by(rotated.out.strip(), receiver.at("/hook")[0])
    assert run("webhook", "redeliver", hid, did).out.split()[0] == did
    harness.wait_until(lambda: len(receiver.at("/hook")) == 2, "it is sent again")
    assert run("webhook", "set", hid, "--disable", "--event", "*", "--json").json["enabled"] is False
    shown = run("webhook", "set", hid, "--enable", "--json").json
    assert shown["enabled"] is True and shown["events"] == ["*"]
    assert run("webhook", "delete", hid).out == f"{hid} deleted\n"
    for args in (("show", hid), ("delete", hid), ("deliveries", hid), ("rotate", hid), ("test", hid), ("set", hid)):
        r = run("webhook", *args)
        assert r.code == 1 and "WEBHOOK_NOT_FOUND" in r.err and r.out == "", r


def test_faults_of_the_command_line(run):
    for args in (("create", "--to", "http://a.test/"), ("create", "--event", "*"), ("set", "x", "--enable", "--disable"), ("redeliver", "x"), ("rotate", "x", "--old-secret-s", "604801")):
        r = run("webhook", *args)
        assert r.code == 2 and r.err and r.out == "", r
    r = run("webhook", "create", "--to", "ftp://a.test/", "--event", "*")
    assert r.code == 1 and "must start with http:// or https://" in r.err and r.out == "", r
