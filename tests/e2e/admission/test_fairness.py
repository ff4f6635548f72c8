"""Shared workers and freed slots: tenants take turns by their weight, and nobody's backlog makes another wait. The turns of tenants in
different shards are those of the shards (cluster/test_all_tenants.py)."""
import uuid

import pytest

import harness
from harness import together, wait_until
from inspect_store import assert_healthy
from recount import assert_recounted


def task(queue):
    return [{"name": "work", "type": "task", "handler": "noop", "queue": queue}]


@pytest.fixture
def queue():
    """Of this test alone: the server is shared, and so are its workers."""
    return "q-" + uuid.uuid4().hex[:12]


def with_jobs(api, queue, jobs, weight=None, wid="hold", beside=None):
    """A tenant with so many jobs in the queue."""
    tenant = api.tenant(beside, **({} if weight is None else {"weight": weight}))
    add_jobs(api, tenant, queue, jobs, wid)
    return tenant


def add_jobs(api, tenant, queue, jobs, wid="hold"):
    api.workflow(tenant, wid, steps=task(queue))
    share = (jobs + 7) // 8

    def start(i):
        for _ in range(min(share, max(0, jobs - i * share))):
            assert api.start(tenant, wid).status == 200

    together(8, start)


def claim(api, queue, most=1, worker="shared"):
    """The tenants of the jobs that a worker for all tenants is handed."""
    r = api.post("/api/v1/jobs/claim", {"worker_id": worker, "queues": [queue], "max": most}, tenant="*")
    assert r.status == 200, r
    return [job["tenant"] for job in r.json["jobs"]]


def assert_shares(order, weights):
    """Whatever stretch of one whole round is looked at, each tenant has its share of it."""
    whole = sum(weights.values())
    for begin in range(len(order) - whole + 1):
        stretch = order[begin:begin + whole]
        assert {t: stretch.count(t) for t in weights} == weights, (begin, stretch)


@pytest.mark.parametrize("most", [1, 3, 7, 100])
def test_shares_are_exactly_the_weights(api, queue, most):
    one = with_jobs(api, queue, 30, weight=1)
    three = with_jobs(api, queue, 90, weight=3, beside=one)
    order = []
    while claimed := claim(api, queue, most):
        order += claimed
    assert len(order) == 120 and order.count(one) == 30
    assert_shares(order, {one: 1, three: 3})


def test_without_weights_tenants_alternate(api, queue):
    one = with_jobs(api, queue, 10)
    tenants = [one, *(with_jobs(api, queue, 10, beside=one) for _ in range(2))]
    assert_shares([claim(api, queue)[0] for _ in range(30)], {t: 1 for t in tenants})


def test_a_new_weight_counts_from_the_next_round(api, queue):
    one = with_jobs(api, queue, 60)
    other = with_jobs(api, queue, 60, beside=one)
    assert_shares([claim(api, queue)[0] for _ in range(10)], {one: 1, other: 1})
    assert api.put(f"/api/v1/tenants/{other}", {"weight": 4}, tenant=other).json["weight"] == 4
    order = [claim(api, queue)[0] for _ in range(50)]
    assert_shares(order[5:], {one: 1, other: 4})


def test_a_tenant_alone_is_handed_everything(api, queue):
    tenant = with_jobs(api, queue, 20, weight=2)
    assert claim(api, queue, 100) == [tenant] * 20 and claim(api, queue) == []


def test_a_share_that_is_not_used_goes_to_the_others(api, queue):
    few = with_jobs(api, queue, 3, weight=5)
    many = with_jobs(api, queue, 20, beside=few)
    order = claim(api, queue, 100)
    assert len(order) == 23 and order.count(few) == 3
    assert sorted(order[:5]) == sorted([few] * 3 + [many] * 2) or sorted(order[:4]) == sorted([few] * 3 + [many])
    assert set(order[5:]) == {many}


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1, 5])
def test_a_single_job_does_not_wait_for_anothers_backlog(weight):
    """It is handed out within one round: after at most `weight` jobs of the other."""
    with harness.server() as s:
        api = s.client()
        big = with_jobs(api, "q", 3000, weight=weight)
        for _ in range(10):
            assert claim(api, "q") == [big]
        small = with_jobs(api, "q", 1, beside=big)
        order = [claim(api, "q")[0] for _ in range(weight + 1)]
        assert order.count(small) == 1, order
        assert claim(api, "q", 100) == [big] * 100
        add_jobs(api, small, "q", 1)
        assert small in claim(api, "q", weight + 1)


def test_a_single_run_is_done_within_one_round_of_a_worker(api, queue):
    """The same with a worker that completes what it claims, while the backlog grows all the time."""
    big, small = with_jobs(api, queue, 50), api.tenant()
    api.workflow(small, steps=task(queue))
    for _ in range(10):
        run = api.start(small).json["run_id"]
        worked = []
        for _ in range(2):
            assert api.start(big).status == 200
            worked.append(api.work("*", queue=queue)["run_id"])
        assert run in worked


def test_each_queue_has_turns_of_its_own(api):
    """More queues than anybody would keep in a small table; the worker looks at one after the other."""
    queues = [f"q-{uuid.uuid4().hex[:12]}" for _ in range(100)]
    one = api.tenant(weight=1)
    three = api.tenant(one, weight=3)
    for tenant, runs in ((one, 3), (three, 9)):
        steps = [{"name": f"s{i}", "type": "task", "handler": "noop", "queue": q, "needs": []} for i, q in enumerate(queues)]
        api.workflow(tenant, "wide", steps=steps)
        for _ in range(runs):
            assert api.start(tenant, "wide").status == 200
    orders = {q: [] for q in queues}
    for _ in range(12):
        for q in queues:
            orders[q] += claim(api, q)
    for q, order in orders.items():
        assert len(order) == 12, q
        assert_shares(order, {one: 1, three: 3})


def test_several_workers_at_once_share_the_turns(api, queue):
    one = with_jobs(api, queue, 50, weight=1)
    three = with_jobs(api, queue, 150, weight=3, beside=one)
    taken = together(8, lambda i: [t for _ in range(10) for t in claim(api, queue, worker=f"w{i}")])
    everything = [t for mine in taken for t in mine]
    assert len(everything) == 80 and everything.count(one) == 20 and everything.count(three) == 60


def test_a_tenants_own_worker_is_handed_only_its_own(api, queue):
    one, other = with_jobs(api, queue, 5), with_jobs(api, queue, 5)
    r = api.post("/api/v1/jobs/claim", {"worker_id": "w", "queues": [queue], "max": 100}, tenant=one)
    assert [job["tenant"] for job in r.json["jobs"]] == [one] * 5
    assert claim(api, queue, 100) == [other] * 5


def test_two_tenants_whose_limits_are_raised_at_once_both_go_on(dev_server, api):
    """Many queued runs are started in slices, in which tenants take turns."""
    tenants = [api.tenant(max_concurrent_runs=0, at_limit="queue", weight=weight) for weight in (1, 3)]
    for tenant in tenants:
        api.workflow(tenant)
    together(8, lambda i: [api.start(tenants[i % 2]).status for _ in range(125)])

    def show(tenant):
        return api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json

    assert [show(t)["queued_runs"] for t in tenants] == [500, 500]
    together(2, lambda i: api.put(f"/api/v1/tenants/{tenants[i]}", {"max_concurrent_runs": 400}, tenant=tenants[i]))
    wait_until(lambda: all(show(t)["active_runs"] == 400 for t in tenants), "both have their 400")
    assert [show(t)["queued_runs"] for t in tenants] == [100, 100]
    assert_recounted(dev_server.db)
    for tenant in tenants:
        api.put(f"/api/v1/tenants/{tenant}", {"max_concurrent_runs": None}, tenant=tenant)
    wait_until(lambda: all(show(t)["queued_runs"] == 0 for t in tenants), "all start")
    assert_recounted(dev_server.db)


def test_turns_start_anew_after_a_kill_and_still_share():
    with harness.server() as s:
        api = s.client()
        one = with_jobs(api, "q", 20, weight=1)
        three = with_jobs(api, "q", 60, weight=3, beside=one)
        assert_shares([claim(api, "q")[0] for _ in range(9)], {one: 1, three: 3})
        s.kill()
        s.start()
        api = s.client()
        assert_shares([claim(api, "q")[0] for _ in range(40)], {one: 1, three: 3})
        assert_healthy(api)
