"""Events on NATS JetStream: each arrives, once by its id and in the order of its run, whatever is stopped, killed or cut meanwhile."""
import contextlib
import os
import random
import re
import subprocess
import sys
import threading

import pytest

import cli
import harness
from checks import assert_problem
from harness import wait_until
from lasting_clients import LastingClients
from nats import Link, nats_server
from prometheus import metrics
from publishing import AT_ONCE, bus_of, publishing_server, waiting

KILLS = int(os.environ.get("PAWL_NATS_KILLS", "6"))
WAITING = int(os.environ.get("PAWL_NATS_WAITING", "2000"))  # events that wait before a server comes back



def metric(api, name):
    return float(re.search(rf"^{name} (\S+)$", metrics(api), re.MULTILINE).group(1))


def timeline(api, tenant, run_id):
    items, cursor = [], ""
    while True:
        page = api.get(f"/api/v1/runs/{run_id}/events?limit=200{cursor}", tenant=tenant).json
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        cursor = f"&cursor={page['next_cursor']}"


def assert_told(nats, api, tenant, run_ids):
    """The stream holds the whole timeline of every one of these runs: every id once, in order."""
    wait_until(lambda: waiting(api) == 0, "everything is acknowledged", harness.PATIENCE_S * 3)
    by_run, ids = {}, []
    with nats.client() as client:
        for m in client.messages("PAWL"):
            ids.append(m.id)
            by_run.setdefault(m.json["subject"], []).append(m)
    assert len(ids) == len(set(ids)), "an id is in the stream twice"
    for run_id in run_ids:
        events, published = timeline(api, tenant, run_id), by_run.get(run_id, [])
        assert [m.id for m in published] == [f"{run_id}:{e['seq']}" for e in events]
        for m, e in zip(published, events):
            name = e["data"]["event"] if e["type"] == "event.emitted" else e["type"]
            assert m.subject == f"pawl.{tenant}.{name}"
            assert (m.json["type"], m.json["time"], m.json["data"]["seq"]) == (name, e["at"], e["seq"])
            assert m.json["source"] == f"/pawl/{tenant}/runs/{run_id}" and m.json["id"] == m.id


@contextlib.contextmanager
def load(api, tenant, threads=4):
    """Starts runs until the end of the block; the list of their ids grows."""
    runs, over, failures = [], threading.Event(), []

    def go(i):
        try:
            while not over.is_set():
                r = api.start(tenant, "now", {"input": {"n": i}})
                assert r.status == 200, r
                runs.append(r.json["run_id"])
        except BaseException as e:  # handed to the test's thread
            failures.append(e)

    starters = [threading.Thread(target=go, args=(i,)) for i in range(threads)]
    for t in starters:
        t.start()
    try:
        yield runs
    finally:
        over.set()
        for t in starters:
            t.join()
    assert not failures, failures[0]


def test_every_event_arrives_once_by_its_id_and_in_the_order_of_its_run():
    with nats_server() as nats, publishing_server(nats.url) as (server, api, tenant):
        api.workflow(tenant, "work", [{"name": "a", "type": "task", "handler": "h"}, {"name": "b", "type": "task", "handler": "h"}])
        runs = [api.start(tenant, "work").json["run_id"] for _ in range(30)]
        harness.together(4, lambda i: [None for _ in iter(lambda: api.work(tenant), None)])
        with load(api, tenant) as more:
            wait_until(lambda: len(more) >= 100, "a hundred runs")
        assert_told(nats, api, tenant, runs + more)
        assert metric(api, "pawl_outbox_depth") == 0 and metric(api, "pawl_outbox_lag_seconds") == 0
        with nats.client() as client:
            config = client.stream("PAWL")["config"]
            assert config["subjects"] == ["pawl.>"] and config["storage"] == "file" and config["duplicate_window"] >= 120 * 10**9
            assert client.stream("PAWL_JOBS") is None  # nothing is offered


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_bus_that_is_away_under_load_gets_every_event_when_it_is_back(end):
    with nats_server() as nats, publishing_server(nats.url) as (server, api, tenant):
        with load(api, tenant) as runs:
            wait_until(lambda: nats.client().count("PAWL") > 100, "events are being published")
            getattr(nats, end)()
            wait_until(lambda: waiting(api) >= WAITING, "so many events wait", max(120, WAITING / 500))
            assert bus_of(api)["status"] == "failing" and api.get("/readyz").status == 200
            assert metric(api, "pawl_outbox_depth") >= WAITING and metric(api, "pawl_outbox_lag_seconds") > 0
            nats.start()
            wait_until(lambda: bus_of(api)["status"] == "ok", "it is connected again")
        assert_told(nats, api, tenant, runs)


def test_a_bus_that_is_killed_again_and_again_gets_every_event():
    with nats_server() as nats, publishing_server(nats.url) as (server, api, tenant):
        with load(api, tenant, threads=2) as runs:
            for _ in range(KILLS):
                before = len(runs)
                wait_until(lambda: len(runs) > before + random.randrange(20, 200), "more runs")
                nats.kill()
                nats.start()
        assert_told(nats, api, tenant, runs)


def test_what_was_stored_and_not_acknowledged_is_sent_again_under_the_same_id_and_kept_once():
    with nats_server() as nats, Link(nats.port) as link, publishing_server(link.url) as (server, api, tenant):
        runs = [api.start(tenant, "now", {"input": {"n": 0}}).json["run_id"]]
        wait_until(lambda: waiting(api) == 0, "the link works")
        with nats.client() as client:
            for _ in range(3):
                link.swallow = True
                stored = client.count("PAWL")
                runs += [api.start(tenant, "now", {"input": {"n": i}}).json["run_id"] for i in range(20)]
                wait_until(lambda: client.count("PAWL") > stored, "something is stored that pawl does not know of")
                assert waiting(api) > 0
                link.cut()
                link.swallow = False
                wait_until(lambda: waiting(api) == 0, "all is acknowledged")
        assert len(link.sent) > len(set(link.sent)), "nothing was sent twice: the test has tested nothing"
        assert_told(nats, api, tenant, runs)


def test_a_server_that_is_killed_at_any_moment_leaves_nothing_untold():
    with nats_server() as nats, publishing_server(nats.url) as (server, api, tenant):
        clients, runs = LastingClients(server), []

        def go(i):
            n = 0
            while clients.goes_on():
                n += 1
                r = clients.answered(lambda client: client.start(tenant, "now", {"input": {"n": i}}, key=f"{i}-{n}"))
                assert r.status == 200, r
                runs.append(r.json["run_id"])

        clients.begin((go, 3))
        for _ in range(KILLS):
            before = len(runs)
            wait_until(lambda: len(runs) > before + random.randrange(5, 60), "more runs")
            server.kill()
            server.start()
            clients.server_is_back()
        clients.end()
        assert_told(nats, server.client(), tenant, runs)


def test_a_server_without_its_bus_works_and_says_what_is_missing():
    with nats_server() as nats:
        nats.stop()
        with publishing_server(nats.url) as (server, api, tenant):
            ready = api.get("/readyz")
            assert ready.status == 200 and ready.json["status"] == "ready"
            bus = wait_until(lambda: bus_of(api)["detail"].startswith("not connected: ") and bus_of(api), "it has tried")
            assert bus["status"] == "failing" and bus["kind"] == "nats"
            run = api.start(tenant, "now", {"input": {"n": 1}}).json
            assert run["run"]["status"] == "succeeded"
            wait_until(lambda: waiting(api) == len(timeline(api, tenant, run["run_id"])), "they wait")
            outbox = api.get("/api/v1/outbox", tenant=tenant).json
            assert outbox["bus"]["status"] == "failing" and outbox["depth"] == waiting(api) and outbox["items"] == []
            assert server.stop() == 0
            server.start()
            nats.start()
            assert_told(nats, server.client(), tenant, [run["run_id"]])
            at_rest = {"status": "ok", "kind": "nats", "detail": "", "waiting": 0}
            wait_until(lambda: bus_of(server.client()) == at_rest, "every node is connected, also one that had nothing to publish")


def test_a_server_without_a_bus_names_none():
    with harness.server() as server:
        api = server.client()
        assert "bus" not in api.get("/readyz").json["dependencies"]
        assert api.get("/api/v1/outbox", tenant="default").json == {
            "bus": {"kind": None, "status": "none", "detail": ""}, "depth": 0, "lag_ms": 0, "items": [], "next_cursor": None}


def test_a_bus_that_is_added_later_gets_what_the_feed_still_has():
    with nats_server() as nats, harness.server() as server:
        api = server.client()
        tenant = api.tenant()
        api.workflow(tenant, "now", AT_ONCE)
        runs = [api.start(tenant, "now", {"input": {"n": i}}).json["run_id"] for i in range(5)]
        assert server.stop() == 0
        server.flags += ["--bus", nats.url]
        server.start()
        assert_told(nats, server.client(), tenant, runs)


@pytest.mark.parametrize("config, fault", [
    ({"name": "PAWL", "subjects": ["other.>"]}, "the stream PAWL is there, but takes other subjects"),
    ({"name": "PAWL", "subjects": ["pawl.>"], "retention": "workqueue"}, "the stream PAWL is there, but does not keep what was read"),
    ({"name": "ELSE", "subjects": ["pawl.>"]}, "the stream PAWL cannot be made: another stream takes its subjects"),
])
def test_a_stream_that_is_not_ours_is_left_alone_and_named(config, fault):
    with nats_server() as nats:
        with nats.client() as client:
            client.make_stream(**config)
        with publishing_server(nats.url) as (server, api, tenant):
            wait_until(lambda: bus_of(api)["detail"] == fault, fault)
            api.start(tenant, "now", {"input": {"n": 1}})
            wait_until(lambda: waiting(api) > 0, "its events wait")
            with nats.client() as client:
                assert client.stream(config["name"])["config"]["subjects"] == config["subjects"]
                assert client.count(config["name"]) == 0
            nats.delete_stream(config["name"])
            wait_until(lambda: waiting(api) == 0, "a stream of its own takes them")


def test_a_bus_that_answers_and_stores_nothing_is_failing_and_says_why():
    with nats_server() as nats, nats.client() as client:
        limits = {"subjects": ["pawl.>"], "discard": "new", "max_msgs": 1}
        made = client.make_stream(name="PAWL", **limits)
        with publishing_server(nats.url) as (server, api, tenant):
            run = api.start(tenant, "now", {"input": {"n": 1}}).json["run_id"]
            wait_until(lambda: bus_of(api)["detail"] == "nothing is stored: maximum messages exceeded", "it says why its events wait")
            assert bus_of(api)["status"] == "failing" and waiting(api) == len(timeline(api, tenant, run)) - 1
            assert api.get("/api/v1/outbox", tenant=tenant).json["items"] == []  # they wait: the bus takes no others either
            assert "error" not in client.api("STREAM.UPDATE.PAWL", {**made["config"], "max_msgs": -1})
            assert_told(nats, api, tenant, [run])
            wait_until(lambda: bus_of(api)["status"] == "ok", "it flows again")


def test_a_stream_that_was_deleted_is_made_again():
    with nats_server() as nats, publishing_server(nats.url) as (server, api, tenant):
        api.start(tenant, "now", {"input": {"n": 1}})
        wait_until(lambda: waiting(api) == 0, "everything is published")
        with nats.client() as client:
            client.api("STREAM.DELETE.PAWL")
        run = api.start(tenant, "now", {"input": {"n": 1}}).json["run_id"]
        assert_told(nats, api, tenant, [run])


def test_a_message_that_the_bus_will_never_take_is_parked_and_the_others_go_on():
    small, large = "max_payload: 20000\n", "max_payload: 8000000\n"
    with nats_server(config=small) as nats, publishing_server(nats.url) as (server, api, tenant):
        other = api.tenant()
        api.workflow(tenant, "big", [{"name": "say", "type": "emit", "event": "too.large", "payload": {"text": "${input.text}"}},
                                     {"name": "done", "type": "transform", "output": 1}])
        api.workflow(other, "now", AT_ONCE)
        run = api.start(tenant, "big", {"input": {"text": "x" * 30000}}).json["run_id"]
        also = api.start(other, "now", {"input": {"n": 1}}).json["run_id"]
        poison = next(f"{run}:{e['seq']}" for e in timeline(api, tenant, run) if e["type"] == "event.emitted")
        assert_told(nats, api, other, [also])
        parked = wait_until(lambda: api.get("/api/v1/outbox", tenant=tenant).json["items"], "it is parked")
        assert [(p["message_id"], p["type"], p["tenant"], p["kind"], p["retrying"]) for p in parked] == [(poison, "too.large", tenant, "event", False)]
        assert "max_payload" in parked[0]["reason"] and parked[0]["attempts"] == 1
        assert metric(api, "pawl_outbox_parked") == 1 and metric(api, "pawl_outbox_depth") == 0
        assert api.get("/api/v1/outbox", tenant=other).json["items"] == []
        with nats.client() as client:
            published = [m.id for m in client.messages("PAWL") if m.id.startswith(run)]
        assert published == [f"{run}:{e['seq']}" for e in timeline(api, tenant, run) if f"{run}:{e['seq']}" != poison]

        assert_problem(api.post(f"/api/v1/outbox/{poison}/retry", tenant=other), 404, "NOT_FOUND")
        assert api.post(f"/api/v1/outbox/{poison}/retry", tenant=tenant).json == {"message_id": poison, "retrying": True}
        again = wait_until(lambda: [p for p in api.get("/api/v1/outbox", tenant=tenant).json["items"] if p["attempts"] == 2], "it was tried again")
        assert again[0]["retrying"] is False

        nats.stop()
        (nats.folder / "nats.conf").write_text(large)
        nats.start()
        wait_until(lambda: bus_of(api)["status"] == "ok", "connected again")
        api.post(f"/api/v1/outbox/{poison}/retry", tenant=tenant)
        wait_until(lambda: not api.get("/api/v1/outbox", tenant=tenant).json["items"], "it came through")
        with nats.client() as client:
            message = client.messages("PAWL")[-1]
        assert message.id == poison and message.json["data"]["payload"] == {"text": "x" * 30000}


def test_tenants_and_event_names_that_no_subject_can_hold_are_written_in_another_way():
    with nats_server() as nats, harness.server("--bus", nats.url) as server:
        api = server.client()
        api.put("/api/v1/tenants/a.b:c", {}, tenant="a.b:c")
        api.workflow("a.b:c", "w", [{"name": "say", "type": "emit", "event": ".odd..name."}])
        api.start("a.b:c", "w")
        wait_until(lambda: waiting(api) == 0, "everything is published")
        with nats.client() as client:
            subjects = [m.subject for m in client.messages("PAWL")]
        assert "pawl.a%2Eb:c.run.created" in subjects and "pawl.a%2Eb:c.%2Eodd.%2Ename%2E" in subjects


# --- jobs ---

TASK = [{"name": "pay", "type": "task", "handler": "payments.pay", "queue": "money"}]


@contextlib.contextmanager
def offering(nats):
    with publishing_server(nats.url, "--bus-queues", "money, other") as (server, api, tenant):
        api.workflow(tenant, "pay", TASK)
        wait_until(lambda: bus_of(api)["status"] == "ok", "connected")
        with nats.client() as client:
            client.make_consumer("PAWL_JOBS", "workers", "pawl-jobs.money")
            yield api, tenant, client


def claim(api, tenant, job_id, worker, **more):
    return api.post(f"/api/v1/jobs/{job_id}/claim", {"worker_id": worker, **more}, tenant=tenant)


def test_a_job_that_is_offered_on_the_bus_is_claimed_and_completed_over_http():
    with nats_server() as nats, offering(nats) as (api, tenant, client):
        run = api.start(tenant, "pay").json["run_id"]
        offer = client.fetch("PAWL_JOBS", "workers")
        job = offer.json["job_id"]
        assert offer.json == {"job_id": job, "run_id": run, "tenant": tenant, "queue": "money", "step": "pay", "handler": "payments.pay", "attempt": 1}
        assert offer.subject == "pawl-jobs.money" and re.fullmatch(rf"{run}:\d+:offer", offer.id)
        claimed = claim(api, tenant, job, "w1").json
        assert claimed["job_id"] == job and claimed["attempt"] == 1 and claimed["handler"] == "payments.pay"
        client.ack(offer)
        assert_problem(claim(api, tenant, job, "w2"), 409, "JOB_NOT_CLAIMABLE", retryable=False)
        done = api.post(f"/api/v1/jobs/{job}/complete", {"lease_token": claimed["lease_token"], "output": {"paid": True}}, tenant=tenant)
        assert done.status == 200 and api.get(f"/api/v1/runs/{run}", tenant=tenant).json["status"] == "succeeded"
        assert_problem(claim(api, tenant, job, "w2"), 409, "JOB_NOT_CLAIMABLE")
        wait_until(lambda: client.count("PAWL_JOBS") == 0, "what was acknowledged is gone")


def test_a_worker_that_dies_loses_its_lease_and_the_job_is_offered_again():
    with nats_server() as nats, offering(nats) as (api, tenant, client):
        run = api.start(tenant, "pay").json["run_id"]
        first = client.fetch("PAWL_JOBS", "workers")
        dead = claim(api, tenant, first.json["job_id"], "dies", lease_ms=100).json
        client.ack(first)
        second = client.fetch("PAWL_JOBS", "workers")
        assert second.json["job_id"] == first.json["job_id"] and second.json["attempt"] == 2 and second.id != first.id
        alive = claim(api, tenant, second.json["job_id"], "lives").json
        client.ack(second)
        stale = api.post(f"/api/v1/jobs/{dead['job_id']}/complete", {"lease_token": dead["lease_token"], "output": "late"}, tenant=tenant)
        assert_problem(stale, 409, "LEASE_LOST")
        done = api.post(f"/api/v1/jobs/{alive['job_id']}/complete", {"lease_token": alive["lease_token"], "output": "paid"}, tenant=tenant)
        shown = api.get(f"/api/v1/runs/{run}", tenant=tenant).json
        assert done.status == 200 and shown["status"] == "succeeded" and shown["steps"][0]["output"] == "paid" and shown["steps"][0]["attempt"] == 2


def test_a_job_that_was_taken_over_http_or_is_paused_is_not_handed_out_twice():
    with nats_server() as nats, offering(nats) as (api, tenant, client):
        api.start(tenant, "pay")
        offer = client.fetch("PAWL_JOBS", "workers")
        assert api.work(tenant, queue="money")["job_id"] == offer.json["job_id"]
        assert_problem(claim(api, tenant, offer.json["job_id"], "late"), 409, "JOB_NOT_CLAIMABLE")
        client.ack(offer)

        run = api.start(tenant, "pay").json["run_id"]
        offer = client.fetch("PAWL_JOBS", "workers")
        assert api.post(f"/api/v1/runs/{run}/pause", tenant=tenant).status == 200
        assert_problem(claim(api, tenant, offer.json["job_id"], "w"), 409, "JOB_NOT_CLAIMABLE")
        client.ack(offer)
        assert api.post(f"/api/v1/runs/{run}/resume", tenant=tenant).status == 200
        assert client.fetch("PAWL_JOBS", "workers").json["job_id"] == offer.json["job_id"]


def test_a_stream_of_offers_that_was_deleted_is_made_again():
    with nats_server() as nats, offering(nats) as (api, tenant, client):
        client.api("STREAM.DELETE.PAWL_JOBS")
        run = api.start(tenant, "pay").json["run_id"]
        wait_until(lambda: client.count("PAWL_JOBS") == 1, "the job is offered")
        assert client.messages("PAWL_JOBS")[0].json["run_id"] == run
        assert api.get("/api/v1/outbox", tenant=tenant).json["items"] == []
        assert_told(nats, api, tenant, [run])


def test_jobs_of_other_queues_and_tenants_are_not_claimed_by_a_stranger():
    with nats_server() as nats, offering(nats) as (api, tenant, client):
        api.workflow(tenant, "plain", [{"name": "a", "type": "task", "handler": "h"}])
        api.start(tenant, "plain")
        run = api.start(tenant, "pay").json["run_id"]
        offer = client.fetch("PAWL_JOBS", "workers")
        assert offer.json["run_id"] == run  # the other one's queue is not served here
        assert client.count("PAWL_JOBS") == 1
        assert_problem(claim(api, api.tenant(), offer.json["job_id"], "w"), 404, "JOB_NOT_FOUND")
        assert_problem(claim(api, tenant, "01890000-0000-7000-8000-000000000000", "w"), 404, "JOB_NOT_FOUND")
        assert_problem(claim(api, tenant, offer.json["job_id"], ""), 400, "FIELD_INVALID")
        assert claim(api, "*", offer.json["job_id"], "for-all").status == 200


def test_the_example_worker_is_offered_a_job_and_completes_it():
    example = harness.ROOT / "examples/nats-worker"
    with nats_server() as nats, harness.server("--bus", nats.url, "--bus-queues", "greetings") as server:
        api = server.client()
        assert api.put("/api/v1/workflows/greet", (example / "workflow.json").read_text(), tenant="default").status == 200
        wait_until(lambda: bus_of(api)["status"] == "ok", "connected")
        env = cli.environment(NATS_URL=nats.url, PAWL_URL=server.url)
        worker = subprocess.Popen([sys.executable, str(example / "worker.py"), "greetings", "1"], env=env, stdout=subprocess.PIPE, text=True)
        try:
            run = api.start("default", "greet", {"input": {"name": "Ada"}}).json["run_id"]
            assert worker.communicate(timeout=harness.PATIENCE_S)[0] == "greetings.say attempt 1 completed\n"
            assert api.get(f"/api/v1/runs/{run}", tenant="default").json["output"] == "Hello, Ada!"
        finally:
            worker.kill()
            worker.wait()
