"""The timeline of a run as a live stream of server-sent events: every event once, in order, and on from any of them."""
import http.client
import socket
import struct

import pytest

import harness
import sse
from actions import begin, claim, complete, control, events, show, task
from checks import assert_problem
from harness import wait_until
from prometheus import metrics

NO_RUN = "0190b3c4-0000-7000-8000-000000000000"
WAIT = {"name": "wait", "type": "wait_signal", "signal": "go"}


class Stream(sse.Stream):
    """A reader of one run's events, whose ids are the numbers of its timeline."""

    def __init__(self, port, tenant, run, last=None, buffer=None):
        super().__init__(port, f"/api/v1/runs/{run}/events", tenant, last, buffer=buffer)

    def read_one(self):
        received = super().read_one()
        if received:
            self.events[-1] = received = (int(received[0]), *received[1:])
        return received


def as_page(api, tenant, run, after=0):
    """What a stream must tell, as the page tells it."""
    return [(e["seq"], e["type"], e) for e in events(api, tenant, run) if e["seq"] > after]


@pytest.fixture
def stream(dev_server, tenant):
    return lambda run, last=None, **kw: Stream(kw.pop("port", dev_server.port), kw.pop("tenant", tenant), run, last, **kw)


def finish(api, tenant, run):
    assert control(api, tenant, run, "signals", {"name": "go"}).status == 200


# --- what is sent ---

def test_every_event_comes_once_and_in_order_while_the_run_goes_on(api, tenant, stream):
    run = begin(api, tenant, task("a"), WAIT, task("b"))
    with stream(run) as s:
        assert [kind for _, kind, _ in s.read(2)] == ["run.created", "job.created"]
        job = claim(api, tenant)[0]
        assert s.read_one()[1] == "job.claimed", "as it happens"
        complete(api, tenant, job, output={"line": "one\ntwo\r\nthree", "ä": "\u2028"})
        finish(api, tenant, run)
        complete(api, tenant, claim(api, tenant)[0])
        received = s.rest()
    assert received == as_page(api, tenant, run) and [seq for seq, _, _ in received] == list(range(1, len(received) + 1))
    assert received[-1][1] == "run.succeeded"


def test_the_stream_of_a_finished_run_tells_all_and_ends(api, tenant, stream):
    run = begin(api, tenant, {"name": "t", "type": "transform", "output": 1})
    for _ in range(2):
        with stream(run) as s:
            assert s.rest() == as_page(api, tenant, run)
    last = s.events[-1][0]
    for after in (0, 1, last - 1, last, last + 1, 10**12):
        with stream(run, after) as s:
            assert s.rest() == as_page(api, tenant, run, after)


@pytest.mark.parametrize("end", ["cancel", "fail"])
def test_it_ends_however_the_run_ends(api, tenant, stream, end):
    run = begin(api, tenant, task("a"), task("b"))
    job = claim(api, tenant)[0]
    with stream(run) as s:
        s.read(3)
        if end == "cancel":
            control(api, tenant, run, "cancel")
        else:
            api.post(f"/api/v1/jobs/{job['job_id']}/fail", {"lease_token": job["lease_token"], "error": {"code": "NO"}}, tenant=tenant)
        assert s.rest()[-1][1] == {"cancel": "run.cancelled", "fail": "run.failed"}[end]
    assert s.events == as_page(api, tenant, run)


def test_a_run_of_thousands_of_events_arrives_whole(api, tenant, stream):
    run = begin(api, tenant, {"name": "each", "type": "transform", "for_each": list(range(3000)), "output": "${item}"})
    with stream(run) as s:
        received = s.rest()
    assert received == as_page(api, tenant, run) and len(received) > 3000


# --- from where it was ---

def test_a_reader_goes_on_behind_the_last_event_it_has(api, tenant, stream):
    run = begin(api, tenant, task("a"), WAIT)
    with stream(run) as s:
        first = s.read(2)
    complete(api, tenant, claim(api, tenant)[0])
    with stream(run, first[-1][0]) as s:
        finish(api, tenant, run)
        second = s.rest()
    assert [*first, *second] == as_page(api, tenant, run)


def test_readers_go_on_through_kill_9():
    with harness.server() as server:
        api = server.client()
        run = begin(api, "t", *[task(f"s{n}") for n in range(4)])
        received, last = [], None
        for n in range(4):
            with Stream(server.port, "t", run, last) as s:
                complete(server.client(), "t", claim(server.client(), "t")[0])
                while s.events[-1:] == [] or s.events[-1][1] != "job.succeeded":
                    s.read_one()
                received += s.events
                last = received[-1][0]
                server.kill()
            server.start()
        with Stream(server.port, "t", run, last) as s:
            received += s.rest()
        assert received == as_page(server.client(), "t", run) and received[-1][1] == "run.succeeded"


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "1 2", "99999999999999999999", "0x1"])
def test_a_last_event_id_that_is_none_is_400(api, tenant, last):
    run = begin(api, tenant, task("a"))
    r = api.get(f"/api/v1/runs/{run}/events", tenant=tenant, headers={"Accept": "text/event-stream", "Last-Event-ID": last})
    assert_problem(r, 400, "BAD_REQUEST")


def test_the_stream_of_a_run_that_is_not_there_or_anothers_is_404(api, tenant):
    run = begin(api, tenant, task("a"))
    for target, who in ((run, api.tenant()), (NO_RUN, tenant), ("nonsense", tenant)):
        r = api.get(f"/api/v1/runs/{target}/events", tenant=who, headers={"Accept": "text/event-stream"})
        assert_problem(r, 404, "RUN_NOT_FOUND")


@pytest.mark.parametrize("accept", ["text/event-stream", "text/html, text/event-stream;q=0.5", "TEXT/EVENT-STREAM"])
def test_only_who_asks_for_a_stream_gets_one(api, tenant, accept):
    run = begin(api, tenant, {"name": "t", "type": "transform", "output": 1})
    kinds = [api.get(f"/api/v1/runs/{run}/events", tenant=tenant, headers=h).header("Content-Type") for h in ({"Accept": accept}, {"Accept": "*/*"}, {})]
    assert kinds == ["text/event-stream", "application/json", "application/json"]


# --- many and slow ones ---

def test_200_readers_all_get_every_event(api, tenant, stream):
    run = begin(api, tenant, task("a"), task("b"), WAIT)
    readers = [stream(run) for _ in range(200)]
    try:
        for s in readers:
            s.open().read(2)
        for _ in range(2):
            complete(api, tenant, claim(api, tenant)[0])
        finish(api, tenant, run)
        received = as_page(api, tenant, run)
        assert all(s.rest() == received for s in readers)
    finally:
        for s in readers:
            s.close()


def test_readers_that_vanish_leave_nothing_behind(api, tenant, stream):
    run = begin(api, tenant, task("a"), WAIT)
    for n in range(50):
        s = stream(run).open()
        s.read(2)
        if n % 2:
            s.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    with stream(run) as s:
        complete(api, tenant, claim(api, tenant)[0])
        finish(api, tenant, run)
        assert s.rest() == as_page(api, tenant, run)
    assert show(api, tenant, run)["status"] == "succeeded"


def test_a_slow_reader_gets_a_long_story_at_its_own_pace_and_holds_up_nobody(api, tenant, stream):
    """8 MB lie there before it reads its first event."""
    run = begin(api, tenant, {"name": "each", "type": "emit", "for_each": list(range(4000)), "event": "big", "payload": "x" * 2000})
    with stream(run, buffer=4096) as slow:
        wait_until(lambda: show(api, tenant, run)["status"] == "succeeded", "the run ends without it")
        assert slow.rest() == as_page(api, tenant, run)


@pytest.mark.parametrize("count,size", [(2, 250_000), (5, 100_000)])
def test_large_events_arrive_whole(api, tenant, stream, count, size):
    run = begin(api, tenant, {"name": "each", "type": "emit", "for_each": list(range(count)), "event": "big", "payload": "${input}"}, input="x" * size)
    with stream(run) as s:
        assert s.rest() == as_page(api, tenant, run)


def test_a_reader_that_stops_reading_is_cut_off_and_can_go_on():
    """More is sent while it does not read than any socket holds, event by event."""
    with harness.server() as server:
        api = server.client()
        steps = [step for n in range(100) for step in ({"name": f"w{n}", "type": "wait_signal", "signal": "go"}, {"name": f"e{n}", "type": "emit", "event": "big", "payload": "${input}"})]
        run = begin(api, "t", *steps, input="x" * 100_000)
        stopped = Stream(server.port, "t", run, buffer=4096).open()
        stopped.read(2)
        for _ in range(100):
            finish(api, "t", run)
        received = as_page(api, "t", run)
        assert received[-1][1] == "run.succeeded", "the run does not wait for it"
        wait_until(lambda: "\npawl_event_listeners 0\n" in metrics(api), "it is cut off", seconds=harness.PATIENCE_S + 40)
        try:
            stopped.rest()
        except (AssertionError, OSError, http.client.HTTPException, ValueError):
            pass  # cut off, also in the middle of an event
        finally:
            stopped.close()
        got = stopped.events
        assert 2 <= len(got) < len(received) and got == received[:len(got)], "what it has is right"
        with Stream(server.port, "t", run, got[-1][0]) as s:
            assert [*got, *s.rest()] == received
