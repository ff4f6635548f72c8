"""Everything that happens in a tenant as one stream: every event once and in order, for many readers at once, from any place, through
restarts; and nobody suffers from a reader that does not read."""
import contextlib
import http.client
import json
import re
import socket
import struct
import subprocess
import threading

import pytest

import cli
import foreign
import harness
import lasting_clients
import sse
from actions import begin, claim, complete, control, events, show, task
from checks import assert_problem
from harness import wait_until
from inspect_store import FOLD_COUNTERS, write
from pages import walk
from prometheus import metrics

ROOT = harness.ROOT_KEY
PATH = "/api/v1/events"
INSTANT = {"name": "t", "type": "transform", "output": 1}
EMIT = {"name": "e", "type": "emit", "event": "orders.paid", "payload": {"amount": 7}}


def listen(server, tenant, last=None, query="", **kw):
    return sse.Stream(server.port, PATH + query, tenant, last, **kw)


def listeners(api):
    return int(re.search(r"^pawl_event_listeners (\d+)$", metrics(api), re.M).group(1))


def timelines(api, tenant):
    """Every event of the tenant by its outward id, as the timelines have them."""
    return {f"{run['id']}:{e['seq']}": e for run in walk(api, "/api/v1/runs?limit=200", tenant) for e in events(api, tenant, run["id"])}


def assert_complete(received, api, tenant):
    """Each event of each timeline once; those of a run in order."""
    ids = [data["id"] for _, _, data in received]
    assert sorted(ids) == sorted(timelines(api, tenant))
    by_run = {}
    for _, _, data in received:
        by_run.setdefault(data["subject"], []).append(data["data"]["seq"])
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in by_run.values()), by_run


def places(received):
    return [tuple(map(int, place.split("-"))) for place, _, _ in received]


# --- what is sent ---

def test_every_event_of_every_run_comes_once_as_a_cloud_event(api, dev_server, tenant):
    with listen(dev_server, tenant) as s:
        first = begin(api, tenant, task("a"), EMIT)
        second = begin(api, tenant, INSTANT, wid="w2")
        complete(api, tenant, claim(api, tenant)[0])
        while not {first, second} <= {d["subject"] for _, kind, d in s.events if kind == "run.succeeded"}:
            s.read_one()
    assert_complete(s.events, api, tenant)
    assert places(s.events) == sorted(set(places(s.events))), "ids rise"
    events_by_id = timelines(api, tenant)
    for _, kind, data in s.events:
        assert data["specversion"] == "1.0" and data["type"] == kind and data["datacontenttype"] == "application/json"
        assert data["source"] == f"/pawl/{tenant}/runs/{data['subject']}" and data["time"] == events_by_id[data["id"]]["at"]
        assert data["data"]["run_id"] == data["subject"]
        assert kind == events_by_id[data["id"]]["type"] or events_by_id[data["id"]]["type"] == "event.emitted"
    assert "orders.paid" in [kind for _, kind, _ in s.events], "what a step emits has its own name"


def test_it_begins_with_what_comes_and_tells_nothing_of_other_tenants(api, dev_server, tenant):
    begin(api, tenant, INSTANT)
    other = api.tenant()
    with listen(dev_server, tenant) as s:
        begin(api, other, INSTANT)
        run = begin(api, tenant, INSTANT)
        s.until("run.succeeded")
    assert {data["subject"] for _, _, data in s.events} == {run}


def test_a_tenant_that_is_not_there_yet_can_be_listened_to(dev_server, api):
    name = "later-" + api.tenant()
    with listen(dev_server, name) as s:
        begin(api, name, INSTANT)
        s.until("run.succeeded")
        begin(api, name, INSTANT)
        s.until("run.succeeded")
    assert_complete(s.events, api, name)


@pytest.mark.parametrize("types,wanted", [
    ("run.*", {"run.created", "run.succeeded"}), ("run.succeeded,orders.*", {"run.succeeded", "orders.paid"}), ("job.succeeded", {"job.succeeded"}),
    ("*", {"run.created", "run.succeeded", "job.succeeded", "orders.paid"}),
])
def test_only_the_types_that_are_asked_for_come(api, dev_server, tenant, types, wanted):
    with listen(dev_server, tenant, query=f"?types={types}") as s, listen(dev_server, tenant) as everything:
        for _ in range(3):
            begin(api, tenant, EMIT)
            everything.until("run.succeeded")
        expected = [e for e in everything.events if e[1] in wanted]
        assert s.read(len(expected)) == expected
    with listen(dev_server, tenant, last="0-0", query=f"?types={types}") as s:
        assert s.read(len(expected)) == expected, "what lies there is chosen from too"


@pytest.mark.parametrize("query", ["?types=", "?types=,", "?types=run.*,", "?types=r*n", "?types=a%20b", "?after=1", "?after=x-1", "?after=-1-1", "?after=1-", "?limit=1", "?types=a&types=b"])
def test_a_query_that_means_nothing_is_400(api, tenant, query):
    assert_problem(api.get(PATH + query, tenant=tenant), 400, "BAD_REQUEST")


@pytest.mark.parametrize("last", ["x", "1", "1-x", "-1-1", "1--1", "99999999999999999999-1", "1-9223372036854775807", "1-2-3"])
def test_a_last_event_id_that_is_none_is_400(api, tenant, last):
    assert_problem(api.get(PATH, tenant=tenant, headers={"Last-Event-ID": last}), 400, "BAD_REQUEST")


# --- from where it was ---

def test_a_reader_goes_on_behind_any_event(api, dev_server, tenant):
    for _ in range(3):
        begin(api, tenant, EMIT)
    count = len(timelines(api, tenant))
    with listen(dev_server, tenant, "0-0") as s:
        received = s.read(count)
    assert_complete(received, api, tenant)
    for n in range(count):
        with listen(dev_server, tenant, received[n][0]) as s:
            assert s.read(count - n - 1) == received[n + 1:]
    with listen(dev_server, tenant, query=f"?after={received[2][0]}") as s:
        assert s.read(count - 3) == received[3:], "for clients that cannot send the header"


def test_a_place_behind_the_end_of_its_row_goes_on_with_the_next_row(api, dev_server, tenant):
    begin(api, tenant, INSTANT)
    with listen(dev_server, tenant, "0-0") as s:
        s.until("run.succeeded")
    num, seq = s.events[-1][0].split("-")
    run = begin(api, tenant, INSTANT)
    with listen(dev_server, tenant, f"{num}-{int(seq) + 1000}") as s:
        s.until("run.succeeded")
    assert {data["subject"] for _, _, data in s.events} == {run}


def test_a_reader_that_has_no_event_yet_gets_its_place(api, dev_server, tenant):
    with listen(dev_server, tenant) as s:
        place = s.reply.headers["Last-Event-ID"]
    begin(api, tenant, INSTANT)
    with listen(dev_server, tenant, place) as s:
        s.until("run.succeeded")
    assert_complete(s.events, api, tenant)


def test_thousands_of_events_are_caught_up_with_while_more_come(api, dev_server, tenant):
    for _ in range(3):
        begin(api, tenant, {"name": "each", "type": "emit", "for_each": list(range(1500)), "event": "n", "payload": "${item}"})
    with listen(dev_server, tenant, "0-0") as s:
        s.read(10)
        begin(api, tenant, INSTANT, wid="last")
        for _ in range(4):
            s.until("run.succeeded")
    assert_complete(s.events, api, tenant)
    assert len(s.events) > 9000


def test_readers_go_on_through_kill_9_without_loss_or_double():
    with harness.server() as server:
        api = server.client()
        begin(api, "t", INSTANT)
        received, last = [], "0-0"
        for n in range(5):
            with listen(server, "t", last) as s:
                api = server.client()
                for _ in range(4):
                    begin(api, "t", INSTANT)
                s.read(3 + 2 * n)  # the rest comes after the restart
                server.kill()
                received += s.events
                last = received[-1][0]
            server.start()
        api = server.client()
        with listen(server, "t", last) as s:
            s.read(len(timelines(api, "t")) - len(received))
            received += s.events
        assert_complete(received, api, "t")


def test_a_foreign_client_goes_on_through_restarts_by_itself():
    """The npm package eventsource, and every event judged by cloudevents."""
    foreign.install()
    with harness.server() as server:
        server.flags = ["--listen", f"127.0.0.1:{server.port}"]  # where the client looks for it again
        begin(server.client(), "t", INSTANT)
        question = {"url": server.url + PATH + "?after=0-0", "headers": {"X-Tenant-ID": "t"}, "types": ["run.created", "job.succeeded", "run.succeeded"], "count": 12}
        with subprocess.Popen(["node", "events.mjs"], cwd=foreign.FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=cli.environment()) as node, contextlib.ExitStack() as end:
            end.callback(node.kill)
            node.stdin.write(json.dumps(question) + "\n")
            node.stdin.flush()
            received = []
            for n in range(4):
                while len(received) < 3 * (n + 1):
                    line = json.loads(node.stdout.readline())
                    received += [line] if "id" in line else []
                if n < 3:
                    server.kill() if n % 2 else server.stop()
                    server.start()
                    begin(server.client(), "t", INSTANT)
            assert node.wait(timeout=harness.PATIENCE_S) == 0
        assert len(received) == 12 and {e["id"] for e in received} == set(timelines(server.client(), "t")) and [e["seq"] for e in received] == [1, 2, 3] * 4


def test_a_place_that_is_not_kept_any_more_is_reported_before_the_oldest_that_is():
    with harness.server() as server:
        api = server.client()
        for _ in range(3):
            begin(api, "t", INSTANT)
        with listen(server, "t", "0-0") as s:
            received = s.read(len(timelines(api, "t")))
        server.stop()
        write(server.db, FOLD_COUNTERS + "DELETE FROM feed_packs WHERE num <= 2; INSERT INTO feed_marks (name, through) VALUES ('swept', 2)", "t")
        server.start()
        kept = [e for e in received if int(e[0].split("-")[0]) > 2]
        for last in ("0-0", received[0][0], "2-1"):
            with listen(server, "t", last) as s:
                place, kind, data = s.read_one()
                assert kind == "reset" and data["reason"], "it hears that it has missed something"
                assert s.read(len(kept)) == kept
            with listen(server, "t", place) as s:
                assert s.read(len(kept)) == kept, "and comes back from there without another"
        with listen(server, "t", kept[0][0]) as s:
            assert s.read(len(kept) - 1) == kept[1:]


def test_a_place_of_another_store_is_reported_as_unknown():
    with harness.server() as server:
        begin(server.client(), "t", INSTANT)
        with listen(server, "t", "1000000-4") as s:
            assert s.read_one()[1] == "reset"
            s.until("run.succeeded")
        assert_complete(s.events[1:], server.client(), "t")


# --- who may, and how many ---

def test_the_stream_of_a_revoked_key_ends():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as server:
        root = server.client(headers={"Authorization": f"Bearer {ROOT}"})
        made = root.post("/api/v1/keys", {"tenant": "t", "role": "viewer"}).json
        kept = root.post("/api/v1/keys", {"tenant": "t", "role": "viewer"}).json
        with sse.Stream(server.port, PATH, headers=[f"X-API-Key: {made['key']}"]) as gone, sse.Stream(server.port, PATH, headers=[f"X-API-Key: {kept['key']}"]) as stays:
            root.delete(f"/api/v1/keys/{made['id']}")
            assert gone.rest() == []
            begin(root, "t", INSTANT)
            stays.until("run.succeeded")
        assert_problem(server.client(headers={"X-API-Key": made["key"]}).get(PATH), 401, "UNAUTHENTICATED")


def test_the_stream_of_a_revoked_key_hears_of_nothing_that_comes_after():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": ROOT}) as server:
        root = server.client(headers={"Authorization": f"Bearer {ROOT}"})
        made = root.post("/api/v1/keys", {"tenant": "t", "role": "viewer"}).json
        with sse.Stream(server.port, PATH, headers=[f"X-API-Key: {made['key']}"]) as gone:
            root.delete(f"/api/v1/keys/{made['id']}")
            begin(root, "t", INSTANT)
            assert gone.rest() == []


def test_a_quiet_stream_says_that_it_is_still_here(dev_server, api, tenant):
    run = begin(api, tenant, task("a"))
    with listen(dev_server, tenant) as quiet, sse.Stream(dev_server.port, f"/api/v1/runs/{run}/events", tenant) as of_run:
        of_run.read(2)
        assert quiet.line() == ": still here\n"
        assert of_run.line() == ": still here\n"


def test_a_server_that_stops_ends_its_streams():
    with harness.server() as server:
        begin(server.client(), "t", task("a"))
        with listen(server, "t", "0-0") as s:
            s.read(2)
            assert server.stop() == 0
            assert s.rest() == s.events
        server.start()


@pytest.mark.slow
def test_beyond_so_many_listeners_others_are_refused_and_let_in_when_there_is_room(most=2048):
    with harness.server() as server:
        api = server.client()
        with sse.Readers(most, server.port, PATH, "t") as subscribers:
            subscribers.opened()
            assert listeners(api) == most
            assert_problem(api.get(PATH, tenant="t"), 503, "OVERLOADED", retryable=True)
            assert api.get("/api/v1/runs", tenant="t").status == 200, "there is room for other requests"
            with listen(server, "other"):
                assert listeners(api) == most + 1, "there is room for other tenants"
            for sock in subscribers.socks[:10]:
                subscribers.selector.unregister(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
            begin(api, "t", INSTANT)  # the server notices that this does not arrive
            wait_until(lambda: listeners(api) == most - 10, "those that went are gone")
            with listen(server, "t", "0-0") as s:
                s.until("run.succeeded")


# --- a thousand of them ---

def rss_mib(server):
    """Of the largest of its processes."""
    kept = [re.search(r"^VmRSS:\s+(\d+) kB$", open(f"/proc/{pid}/status").read(), re.M).group(1) for pid in server.pids()]
    return max(map(int, kept)) / 1024


@pytest.mark.slow
def test_a_thousand_subscribers_get_all_events_in_order_within_100_mib_and_one_that_does_not_read_holds_up_nobody():
    with harness.server() as server:
        api = server.client()
        api.workflow("t", "big", [{"name": "e", "type": "emit", "event": "big", "payload": "${input}"}])
        stuck = listen(server, "t", buffer=4096).open()
        with sse.Readers(1000, server.port, PATH, "t") as subscribers:
            subscribers.opened()
            assert listeners(api) == 1001
            for n in range(40):
                assert api.start("t", "big", {"input": "x" * 5000}).status == 200
            last = api.start("t", "big", {"input": "last"}).json["run_id"]
            end = b'"type":"run.succeeded","subject":"' + last.encode()
            subscribers.read_until(lambda raw: raw.endswith(b"\r\n") and raw.rfind(end, max(0, len(raw) - 2000)) >= 0, "all events")
            used = rss_mib(server)
            texts = subscribers.texts()
        print(f"server: {used:.0f} MiB with 1001 listeners")
        assert used < 100, "MiB"
        assert len(set(texts)) == 1, "everyone got the same"
        received, _ = sse.parse(texts[0])
        assert_complete(received, api, "t")
        try:
            stuck.read(len(received))
        except (AssertionError, OSError, http.client.HTTPException, TypeError):
            pass  # it took nothing for too long
        stuck.close()
        with listen(server, "t", stuck.events[-1][0] if stuck.events else "0-0") as s:
            assert [*stuck.events, *s.read(len(received) - len(stuck.events))] == received, "and that one reads at its own pace"


@pytest.mark.slow
def test_a_thousand_that_come_back_at_once_after_kill_9_miss_nothing():
    with harness.server() as server:
        api = server.client()
        with sse.Readers(1000, server.port, PATH, "t") as subscribers:
            subscribers.opened()
            for _ in range(5):
                begin(api, "t", INSTANT)
            subscribers.read_until(lambda raw: raw.count(b"event: run.succeeded\n") >= 3 and raw.endswith(b"\r\n"), "three runs")
            server.kill()
            before, _ = sse.parse(subscribers.texts()[0])
        server.start()
        api = server.client()
        with sse.Readers(1000, server.port, PATH, "t", last=before[-1][0]) as subscribers:
            for _ in range(5):
                begin(api, "t", INSTANT)
            total = len(timelines(api, "t"))
            subscribers.read_until(lambda raw: raw.count(b"\nevent: ") >= total - len(before) and raw.endswith(b"\r\n"), "the rest")
            for text in subscribers.texts():
                after, _ = sse.parse(text)
                assert len(after) == total - len(before)
            assert len(set(subscribers.texts())) == 1
        assert_complete([*before, *after], api, "t")


@pytest.mark.slow
def test_readers_that_vanish_leave_nothing_behind():
    with harness.server() as server:
        api = server.client()
        run = begin(api, "t", task("a"), {"name": "w", "type": "wait_signal", "signal": "go"})
        for n in range(300):
            s = listen(server, "t", *(["0-0"] if n % 3 else [])).open()
            if n % 3:
                s.read(2)
            if n % 2:
                s.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        with listen(server, "t", "0-0") as s:
            complete(api, "t", claim(api, "t")[0])
            control(api, "t", run, "signals", {"name": "go"})
            s.until("run.succeeded")
        assert_complete(s.events, api, "t")
        assert show(api, "t", run)["status"] == "succeeded"
        wait_until(lambda: listeners(api) == 0, "they are gone", seconds=harness.PATIENCE_S + 20)


# --- the ledger ---

NAP = {"name": "s", "type": "sleep", "duration_ms": 20}
CLOSE = {"name": "e", "type": "emit", "event": "ledger.closed"}


class Ledger:
    """A reader that writes down everything, and comes back after each cut with the last id it has seen."""

    def __init__(self, server, tenant):
        self.server, self.tenant, self.received = server, tenant, []
        self.begun_at, self.cuts = None, 0
        self.listens_to = self.heard_from = None  # processes of the server

    def open(self):
        last = self.received[-1][0] if self.received else self.begun_at
        stream = listen(self.server, self.tenant, last).open()
        self.listens_to = self.server.process
        self.begun_at = self.begun_at or stream.reply.headers["Last-Event-ID"]
        return stream

    def read(self, stream):
        """Until the run that closes the ledger is over; False when it is cut off before."""
        try:
            closing = None
            while True:
                event = stream.read_one()
                if event is None:
                    return False
                self.received.append(event)
                self.heard_from = self.listens_to
                _, kind, data = event
                closing = data["subject"] if kind == "ledger.closed" else closing
                if kind == "run.succeeded" and data["subject"] == closing:
                    return True
        except (ConnectionError, http.client.HTTPException, AssertionError):  # cut in the middle of an event
            return False
        finally:
            stream.close()

    def assert_balanced(self, api, runs):
        created = {d["subject"] for _, kind, d in self.received if kind == "run.created"}
        over = {d["subject"] for _, kind, d in self.received if kind == "run.succeeded"}
        assert len(over) == runs + 1 and created == over
        assert places(self.received) == sorted(set(places(self.received))), "each place once, and they rise"
        assert_complete(self.received, api, self.tenant)


def close_ledger(api, tenant, runs):
    """When all runs are over: one more, whose events are the last."""
    query = "/api/v1/runs?status=succeeded&limit=200"
    wait_until(lambda: len(list(walk(api, query, tenant))) == runs, "all runs are over")
    begin(api, tenant, CLOSE, wid="close")


def test_under_load_every_stream_tells_every_event_once_and_in_order(api, dev_server, tenant):
    runs, starters = 320, 4
    other = api.tenant()
    for t in (tenant, other):
        api.workflow(t, "nap", [NAP])
    ledgers = [Ledger(dev_server, tenant), Ledger(dev_server, tenant), Ledger(dev_server, other)]
    streams = [ledger.open() for ledger in ledgers]
    done = threading.Barrier(starters)

    def play(i):
        if i < len(ledgers):
            return ledgers[i].read(streams[i])
        for _ in range(runs // starters):
            for t in (tenant, other):
                assert api.start(t, "nap").status == 200
        if done.wait() == 0:
            for t in (tenant, other):
                close_ledger(api, t, runs)
        return True
    assert all(harness.together(len(ledgers) + starters, play))
    for ledger in ledgers:
        ledger.assert_balanced(api, runs)


def test_through_kills_a_stream_that_comes_back_has_no_gap_and_no_duplicate():
    """Each process is killed when both readers have heard of its runs, and while others are started."""
    runs, starters, kills = 300, 3, 3
    between = runs // (kills + 1)
    with harness.server() as s:
        tenant = "ledger"
        s.client().workflow(tenant, "nap", [NAP])
        ledgers = [Ledger(s, tenant), Ledger(s, tenant)]
        readers, clients = lasting_clients.LastingClients(s), lasting_clients.LastingClients(s)
        allowed, started = threading.Semaphore(between + between // 2), threading.Semaphore(0)

        def keep(i):
            while not ledgers[i].read(readers.answered(lambda _: ledgers[i].open())):
                ledgers[i].cuts += 1

        def start(i):
            for n in range(runs // starters):
                allowed.acquire()
                r = clients.answered(lambda c: c.start(tenant, "nap", key=f"{i}-{n}"))
                assert r.status == 200, r
                started.release()
        readers.begin((keep, len(ledgers)))
        wait_until(lambda: all(ledger.begun_at for ledger in ledgers), "both listen")
        clients.begin((start, starters))
        for _ in range(kills):
            for _ in range(between):
                assert started.acquire(timeout=harness.PATIENCE_S)
            wait_until(lambda: all(ledger.heard_from is s.process for ledger in ledgers), "both have heard from the process that is killed")
            s.kill()
            s.start()
            readers.server_is_back()
            clients.server_is_back()
            allowed.release(between)
        clients.end()
        close_ledger(s.client(), tenant, runs)
        readers.end()
        for ledger in ledgers:
            assert ledger.cuts >= kills
            ledger.assert_balanced(s.client(), runs)
