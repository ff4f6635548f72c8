"""pawl approval: the list, one of them, approve, reject, analytics."""
import json

import pytest

from actions import step, task
from cli import pawl

NO_ID = "0190b3c4-0000-7000-8000-000000000000"


@pytest.fixture
def run(dev_server, tenant):
    """run(*args, who=NAME): the command with this test's server and tenant."""
    return lambda *args, who="ann", **kw: pawl(*args, **{"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant, "PAWL_ACTOR": who, **kw})


@pytest.fixture
def ask(api, tenant):
    """ask(gate): the job of a task that waits for a person."""
    def one(gate=True):
        api.workflow(tenant, "w", [task("pay", requires_approval=gate)])
        return step(api.start(tenant, "w", {"input": {"amount": 120}}).json["run"], "pay")["job_id"]
    return one


def test_list_and_show(run, ask):
    job = ask({"prompt": "Pay ${input.amount}?", "approvers": {"users": ["ann"]}})
    rows = run("approval", "list").rows
    assert rows[0][:4] == ["JOB", "WORKFLOW", "STEP", "STATUS"] and rows[1][:4] == [job, "w", "pay", "pending"] and rows[1][-2:] == ["Pay", "120?"]
    shown = run("approval", "show", job)
    assert shown.code == 0 and '"users":["ann"]' in shown.out and '{"amount":120}' in shown.out, shown
    assert run("approval", "show", job, "--json").json["prompt"] == "Pay 120?"
    run("approval", "approve", job)
    assert len(run("approval", "list").rows) == 1
    assert run("approval", "list", "--status", "approved").rows[1][0] == run("approval", "list", "--status", "all").rows[1][0] == job
    r = run("approval", "list", "--status", "maybe")
    assert r.code == 2 and 'Unknown status "maybe". Allowed: pending, approved' in r.err, r


@pytest.mark.parametrize("verb,done", [("approve", "approved"), ("reject", "rejected")])
def test_a_decision_is_said_once_and_repeated_safely(run, ask, verb, done):
    job = ask()
    first = run("approval", verb, job, "--reason", "because", "--json").json
    assert (first["status"], first[f"{done}_by"], first["reason"]) == (done, "ann", "because")
    again = run("approval", verb, job, who="bob")
    assert again.code == 0 and again.out == f"{job} already_{done}  by ann at {first[f'{done}_at']}\n", again
    r = run("approval", "reject" if verb == "approve" else "approve", job)
    assert r.code == 1 and "APPROVAL_CONFLICT" in r.err and f"Already {done} by ann" in r.err and r.out == "", r


def test_a_quorum_says_how_many(run, ask):
    job = ask({"approvers": {"count": 2}})
    assert run("approval", "approve", job).out == f"{job} recorded  1 of 2\n"
    assert run("approval", "approve", job).out == f"{job} already_recorded  1 of 2\n"
    last = run("approval", "approve", job, who="bob").out
    assert last.startswith(f"{job} approved  by bob at ") and last.endswith("  2 of 2\n"), last


def test_what_was_seen_and_what_was_made_of_it(run, ask, api, tenant, tmp_path):
    job = ask()
    r = run("approval", "approve", job, "--expected-hash", "0")
    assert r.code == 1 and "APPROVAL_STALE" in r.err, r
    seen = run("approval", "show", job, "--json").json["content_hash"]
    r = run("approval", "approve", job, "--edited", "{nonsense")
    assert r.code == 2 and r.out == "", r
    (tmp_path / "edited.json").write_text(json.dumps({"amount": 80}))
    r = run("approval", "approve", job, "--expected-hash", seen, "--edited", f"@{tmp_path / 'edited.json'}")
    assert r.code == 0 and api.work(tenant)["input"] == {"amount": 80}, r


def test_analytics(run, ask):
    for verb in ("approve", "reject"):
        job = ask()
        run("approval", verb, job), run("approval", verb, job)
    rows = run("approval", "analytics").rows
    assert rows[0][:5] == ["WORKFLOW", "REQUESTED", "PENDING", "APPROVED", "REJECTED"]
    assert [row[:5] for row in rows[1:]] == [["w", "2", "0", "1", "1"], ["(all)", "2", "0", "1", "1"]] and rows[2][-2:] == ["2", "0"]
    assert run("approval", "analytics", "--days", "1", "--workflow", "other", "--json").json["total"]["requested"] == 0
    assert run("approval", "analytics", "--days", "0").code == 2


def test_there_is_no_such_approval(run):
    for verb in ("show", "approve", "reject"):
        r = run("approval", verb, NO_ID)
        assert r.code == 1 and "APPROVAL_NOT_FOUND" in r.err and r.out == "", r
