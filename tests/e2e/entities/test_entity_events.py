"""Events of entities are published as those of runs are: on the entity's own stream, on its tenant's, to webhooks and on NATS
JetStream; each event once by its id and in order, although old generations go, servers are killed and the bus is away."""
import contextlib
import random
import urllib.parse

import pytest

import harness
import sse
from actions import claim, complete
from checks import assert_problem
from harness import wait_until
from inspect_store import rows
from lasting_clients import LastingClients
from nats import nats_server
from pages import walk
from prometheus import metrics
from publishing import waiting

KILLS = 4
DELETED = 50
EVERYTHING = {"keep_generations": None}
ONLY_THE_CURRENT = {"keep_generations": 0, "rollover_events": 5}


def put_type(api, tenant, etype="member", **rules):
    r = api.put(f"/api/v1/entity-types/{etype}", {"queue": "q", "handler": "h", **rules}, tenant=tenant)
    assert r.status == 200, r


def path(eid, etype="member"):
    return f"/api/v1/entities/{etype}/{urllib.parse.quote(eid, safe='')}"


def send(api, tenant, eid="ann", n=1, **more):
    r = api.post(path(eid) + "/signals", {"name": "earn", "payload": {"n": n}, **more}, tenant=tenant)
    assert r.status == 200, r
    return r.json


def answer_of(job):
    """Sums up, and says so to the world with every call."""
    state = job["input"]["state"] or {"sum": 0}
    total = state["sum"] + sum(s["payload"]["n"] for s in job["input"]["signals"])
    return {"state": {"sum": total}, "emit": [{"event": "points.counted", "payload": {"sum": total}}]}


def work(api, tenant, wait_ms=0):
    """Answers one call; False when none waits."""
    jobs = claim(api, tenant, queues=["q"], wait_ms=wait_ms)
    for job in jobs:
        assert complete(api, tenant, job, output=answer_of(job)).status in (200, 409)
    return bool(jobs)


def timeline(api, tenant, eid="ann"):
    return walk(api, path(eid) + "/events?limit=200", tenant)


def event_type(event):
    return event["data"]["event"] if event["type"] == "event.emitted" else event["type"]


def as_cloud_event(tenant, eid, event, uuid, etype="member"):
    """An event of the timeline as a CloudEvent, but for the data that is the timeline's own."""
    return {"specversion": "1.0", "id": f"{uuid}:{event['seq']}", "source": f"/pawl/{tenant}/entities/{etype}/{urllib.parse.quote(eid, safe='~')}",
            "type": event_type(event), "subject": f"{etype}/{eid}", "time": event["at"], "datacontenttype": "application/json",
            "data": {"entity_type": etype, "entity_id": eid, "seq": event["seq"], **(event["data"] or {})}}


def live_and_die(api, tenant, eid):
    """An entity that is deleted right after it emitted an event; the types of its events, in order."""
    send(api, tenant, eid)
    assert work(api, tenant)
    assert api.delete(path(eid), tenant=tenant).status == 200
    return ["entity.created", "entity.signaled", "entity.called", "entity.handled", "points.counted", "entity.deleted"]


def swept(db):
    """Nothing is left of entities that were deleted."""
    return not rows(db, "SELECT entity FROM entity_sweeps WHERE deleted = 1")


def uuid_of(received):
    return received["id"].rpartition(":")[0]


class Stream(sse.Stream):
    """A reader of one entity's events, whose ids are the numbers of its timeline."""

    def __init__(self, port, tenant, eid="ann", last=None):
        super().__init__(port, path(eid) + "/events", tenant, last)

    def read_one(self):
        received = super().read_one()
        if received:
            self.events[-1] = received = (int(received[0]), *received[1:])
        return received


@pytest.fixture
def stream(dev_server, tenant):
    return lambda eid="ann", last=None: Stream(dev_server.port, tenant, eid, last)


# --- its own stream ---

def test_every_event_comes_once_and_in_order_as_it_happens(api, tenant, stream):
    put_type(api, tenant, **EVERYTHING)
    send(api, tenant)
    with stream() as s:
        assert [kind for _, kind, _ in s.read(2)] == ["entity.created", "entity.signaled"]
        assert work(api, tenant)
        assert [kind for _, kind, _ in s.read(3)] == ["entity.called", "entity.handled", "event.emitted"]
        for n in range(150):
            send(api, tenant, n=n)
        while work(api, tenant):
            pass
        expected = [(e["seq"], e["type"], e) for e in timeline(api, tenant)]
        s.read(len(expected) - 5)
        assert s.events == expected and [seq for seq, _, _ in expected] == list(range(1, len(expected) + 1))


def test_a_reader_goes_on_where_it_was(api, tenant, stream):
    put_type(api, tenant, **EVERYTHING)
    for n in range(5):
        send(api, tenant, n=n)
    for last in range(1, 6):
        with stream(last=last) as s:
            assert [seq for seq, _, _ in s.read(6 - last)] == list(range(last + 1, 7))
    with stream(last=6) as s:  # it waits for what comes
        send(api, tenant)
        assert s.read_one()[:2] == (7, "entity.signaled")


def test_what_is_not_there_has_no_stream(api, tenant):
    put_type(api, tenant)
    headers = {"Accept": "text/event-stream"}
    assert_problem(api.get(path("ann") + "/events", tenant=tenant, headers=headers), 404, "ENTITY_NOT_FOUND")
    assert_problem(api.get(path("ann", "nothing") + "/events", tenant=tenant, headers=headers), 404)
    send(api, tenant)
    assert_problem(api.get(path("ann") + "/events", tenant=api.tenant(), headers=headers), 404)
    for bad in ("x", "-1", "1-2"):
        assert_problem(api.get(path("ann") + "/events", tenant=tenant, headers={**headers, "Last-Event-ID": bad}), 400, "BAD_REQUEST")


def test_a_reader_behind_the_oldest_kept_event_gets_a_refusal(api, tenant, stream):
    put_type(api, tenant, **ONLY_THE_CURRENT)
    for n in range(20):
        send(api, tenant, n=n)
        assert work(api, tenant)
    kept = wait_until(lambda: len(page := timeline(api, tenant)) <= 2 * 5 and page, "old generations go")
    assert [e["seq"] for e in kept] == list(range(kept[0]["seq"], kept[-1]["seq"] + 1)) and kept[0]["seq"] > 50
    first = kept[0]["seq"]
    with stream(last=3) as s:
        assert s.read_one()[:2] == (first - 1, "reset")
        assert [seq for seq, _, _ in s.read(len(kept))] == [e["seq"] for e in kept]
    for last in (None, 0, first - 1):
        with stream(last=last) as s:
            assert s.read_one() == (first, kept[0]["type"], kept[0])


def test_the_stream_ends_when_the_entity_is_deleted_and_the_name_begins_anew(api, tenant, stream):
    put_type(api, tenant, **EVERYTHING)
    for n in range(10):
        send(api, tenant, n=n)
    with stream() as s, stream(last=11) as other:
        s.read(11)
        assert api.delete(path("ann"), tenant=tenant).status == 200
        for reader in (s, other):
            assert reader.read_one()[:2] == (12, "entity.deleted") and reader.read_one() is None
    send(api, tenant)
    with stream(last=11) as s:  # of an entity that is gone
        assert [(seq, kind) for seq, kind, _ in s.read(3)] == [(0, "reset"), (1, "entity.created"), (2, "entity.signaled")]


# --- its tenant's stream ---

NAMES = ["ann", "a/b c?&#%", "ann@example.test", "é\"\\~._-"]


def test_the_tenants_stream_tells_of_entities_whatever_they_are_called(dev_server, api, tenant):
    put_type(api, tenant, **EVERYTHING)
    with sse.Stream(dev_server.port, "/api/v1/events", tenant) as all_of_it, \
            sse.Stream(dev_server.port, "/api/v1/events?types=points.*", tenant) as emitted:
        for eid in NAMES:
            send(api, tenant, eid)
            assert work(api, tenant)
            received = [data for _, _, data in all_of_it.read(5)]
            assert received == [as_cloud_event(tenant, eid, e, uuid_of(received[0])) for e in timeline(api, tenant, eid)]
            assert emitted.read_one()[2] == received[-1] and received[-1]["type"] == "points.counted"
    assert len({data["id"] for _, _, data in all_of_it.events}) == 5 * len(NAMES)


def test_the_tenants_stream_tells_of_a_deletion_and_of_what_was_before(dev_server, api, tenant):
    put_type(api, tenant, **EVERYTHING)
    with sse.Stream(dev_server.port, "/api/v1/events", tenant) as s:
        for eid in ("ann", "bob", "ann"):  # the last one is another
            kinds = live_and_die(api, tenant, eid)
            received = [data for _, _, data in s.read(len(kinds))]
            assert [t["type"] for t in received] == kinds and {t["subject"] for t in received} == {f"member/{eid}"}
            assert [t["id"] for t in received] == [f"{uuid_of(received[0])}:{n + 1}" for n in range(len(kinds))]
            assert received[-1]["data"] == {"entity_type": "member", "entity_id": eid, "seq": len(kinds), "by": received[0]["data"]["by"]}
    assert len({uuid_of(data) for _, _, data in s.events}) == 3


# --- webhooks ---

@pytest.fixture
def calling(calling_server):
    api = calling_server.client()
    return api, api.tenant()


def came(receiver, at):
    return [s.json for s in receiver.at(at)]


def test_webhooks_choose_among_events_of_entities(calling, receiver):
    api, tenant = calling
    put_type(api, tenant, **EVERYTHING)
    for at, patterns in (("/all", ["*"]), ("/entities", ["entity.*"]), ("/points", ["points.*", "entity.created"]), ("/runs", ["run.*", "job.*"])):
        r = api.post("/api/v1/webhooks", {"url": receiver.answers(at, (200, b"")), "events": patterns}, tenant=tenant)
        assert r.status == 200, r
    send(api, tenant)
    assert work(api, tenant)
    events = timeline(api, tenant)
    wait_until(lambda: len(came(receiver, "/all")) == len(events), "all events are delivered")
    wait_until(lambda: len(came(receiver, "/entities")) == len(events) - 1 and len(came(receiver, "/points")) == 2, "those that were chosen too")
    received = sorted(came(receiver, "/all"), key=lambda t: t["data"]["seq"])
    assert received == [as_cloud_event(tenant, "ann", e, uuid_of(received[0])) for e in events]
    assert {t["type"] for t in came(receiver, "/points")} == {"entity.created", "points.counted"} and came(receiver, "/runs") == []


def test_webhooks_get_every_event_although_generations_go_and_the_server_is_killed(receiver):
    with harness.server("--allow-private-addresses") as server:
        api = server.client()
        tenant = api.tenant()
        put_type(api, tenant, **ONLY_THE_CURRENT)
        api.post("/api/v1/webhooks", {"url": receiver.answers("/hook", (200, b"")), "events": ["entity.*", "points.*"]}, tenant=tenant)
        for n in range(KILLS * 10):
            send(api, tenant, n=n)
            assert work(api, tenant)
            if n % 10 == 9:
                server.kill()
                api = server.start().client()
        last = timeline(api, tenant)[-1]["seq"]
        wait_until(lambda: len({t["id"] for t in came(receiver, "/hook")}) >= last, "everything is delivered", harness.PATIENCE_S * 3)
        assert {t["data"]["seq"] for t in came(receiver, "/hook")} == set(range(1, last + 1))
        assert len({uuid_of(t) for t in came(receiver, "/hook")}) == 1
        wait_until(lambda: timeline(api, tenant)[0]["seq"] > last - 10, "old generations go")
        assert api.get("/api/v1/doctor", tenant=tenant).json["ok"]


@pytest.mark.parametrize("killed", [False, True])
def test_webhooks_get_events_of_entities_that_were_deleted_at_once(receiver, killed):
    with harness.server("--allow-private-addresses") as server:
        api = server.client()
        tenant = api.tenant()
        put_type(api, tenant)
        api.post("/api/v1/webhooks", {"url": receiver.answers("/hook", (200, b"")), "events": ["points.*", "entity.deleted"]}, tenant=tenant)
        for n in range(DELETED):
            live_and_die(api, tenant, f"e{n}")
            if killed and n % 10 == 9:
                server.kill()
                api = server.start().client()
        expected = {(f"member/e{n}", kind) for n in range(DELETED) for kind in ("points.counted", "entity.deleted")}
        received = lambda: {t["id"]: (t["subject"], t["type"]) for t in came(receiver, "/hook")}
        wait_until(lambda: len(received()) >= len(expected), "everything is delivered", harness.PATIENCE_S * 3)
        wait_until(lambda: swept(server.db), "and then nothing is left")
        assert sorted(received().values()) == sorted(expected), "each under one id"
        assert killed or len(came(receiver, "/hook")) == len(expected)
        assert rows(server.db, "SELECT count(*) FROM events") == [(0,)]
        assert api.get("/api/v1/doctor", tenant=tenant).json["ok"]


# --- NATS ---

@contextlib.contextmanager
def bus_server(bus, *flags, **rules):
    with harness.server("--bus", bus, *flags) as server:
        api = server.client()
        tenant = api.tenant()
        put_type(api, tenant, **rules)
        yield server, api, tenant


def messages(nats, api):
    """All that the stream holds, by subject of the CloudEvent: every id once."""
    wait_until(lambda: waiting(api) == 0, "everything is acknowledged", harness.PATIENCE_S * 3)
    by_entity, ids = {}, []
    with nats.client() as client:
        for m in client.messages("PAWL"):
            assert m.id == m.json["id"]
            ids.append(m.id)
            by_entity.setdefault(m.json["subject"], []).append(m)
    assert len(ids) == len(set(ids)), "an id is in the stream twice"
    return by_entity


def test_the_bus_gets_each_event_once_and_in_order_although_the_server_is_killed():
    with nats_server() as nats, bus_server(nats.url, **EVERYTHING) as (server, api, tenant):
        clients, sent = LastingClients(server), []

        def signals(i):
            n = 0
            while clients.goes_on():
                n += 1
                clients.answered(lambda client: send(client, tenant, f"e{i}", n, dedup_key=f"{i}-{n}"))
                sent.append((i, n))

        def handler(_):
            while clients.goes_on():
                clients.answered(lambda client: work(client, tenant, wait_ms=20))

        clients.begin((signals, 3), (handler, 2))
        for _ in range(KILLS):
            before = len(sent)
            wait_until(lambda: len(sent) > before + random.randrange(5, 60), "more signals")
            server.kill()
            server.start()
            clients.server_is_back()
        clients.end()
        api = server.client()
        received = messages(nats, api)
        for i in range(3):
            events, mine = timeline(api, tenant, f"e{i}"), received[f"member/e{i}"]
            assert [m.json for m in mine] == [as_cloud_event(tenant, f"e{i}", e, uuid_of(mine[0].json)) for e in events]
            assert [m.subject for m in mine] == [f"pawl.{tenant}.{event_type(e)}" for e in events]
            assert sum(e["type"] == "entity.signaled" for e in events) == len([s for s in sent if s[0] == i])
        assert api.get("/api/v1/doctor", tenant=tenant).json["ok"]


def test_nothing_goes_that_a_bus_that_is_away_has_not_been_told():
    with nats_server() as nats, bus_server(nats.url, **ONLY_THE_CURRENT) as (server, api, tenant):
        for n in range(10):
            send(api, tenant, n=n)
            assert work(api, tenant)
        wait_until(lambda: waiting(api) == 0 and timeline(api, tenant)[0]["seq"] > 30, "old generations go, once they are published")
        nats.stop()
        kept_from = timeline(api, tenant)[-1]["seq"] + 1
        for n in range(20):
            send(api, tenant, n=n)
            assert work(api, tenant)
        kinds = live_and_die(api, tenant, "bob")
        wait_until(lambda: not rows(server.db, "SELECT 1 FROM entity_generations WHERE entity IN (SELECT entity FROM entity_sweeps WHERE deleted = 1)"),
                   "the sweep has been by: of an entity that was deleted only unpublished events are left")
        server.kill()
        api = server.start().client()
        assert timeline(api, tenant)[0]["seq"] <= kept_from
        last = timeline(api, tenant)[-1]["seq"]
        nats.start()
        received = messages(nats, api)
        assert [m.json["data"]["seq"] for m in received["member/ann"]] == list(range(1, last + 1))
        assert [m.json["data"]["seq"] for m in received["member/bob"]] == list(range(1, len(received["member/bob"]) + 1))
        assert [m.json["type"] for m in received["member/bob"] if m.json["type"] != "entity.rolled_over"] == kinds
        wait_until(lambda: timeline(api, tenant)[0]["seq"] > last - 10 and swept(server.db), "and now they go")


def test_calls_of_entities_are_not_offered_on_the_bus():
    with nats_server() as nats, bus_server(nats.url, "--bus-queues", "q", **EVERYTHING) as (server, api, tenant):
        send(api, tenant)
        assert work(api, tenant)
        messages(nats, api)
        with nats.client() as client:
            assert client.stream("PAWL_JOBS") is None or client.count("PAWL_JOBS") == 0


# --- what is counted ---

def test_signals_and_calls_are_counted_by_what_became_of_them():
    with harness.server() as server:
        api = server.client()
        tenant = api.tenant()
        put_type(api, tenant, max_inbox=2)
        send(api, tenant, dedup_key="a")
        send(api, tenant, dedup_key="a")
        send(api, tenant, dedup_key="b")
        assert_problem(api.post(path("ann") + "/signals", {"name": "earn"}, tenant=tenant), 429, "INBOX_FULL")
        job = claim(api, tenant, queues=["q"], lease_ms=100)[0]
        again = wait_until(lambda: claim(api, tenant, queues=["q"]), "the lease has ended")[0]
        assert complete(api, tenant, job, output=answer_of(job)).status == 409
        assert complete(api, tenant, again, output=answer_of(again)).status == 200
        page = metrics(api).splitlines()
        for line in ('pawl_entity_signals_total{outcome="accepted"} 2', 'pawl_entity_signals_total{outcome="duplicate"} 1',
                     'pawl_entity_signals_total{outcome="refused"} 1', 'pawl_entity_calls_total{outcome="applied"} 1',
                     'pawl_entity_calls_total{outcome="expired"} 1', 'pawl_entity_calls_total{outcome="stale"} 1',
                     'pawl_entity_calls_total{outcome="failed"} 0'):
            assert line in page
