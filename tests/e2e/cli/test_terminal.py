"""What a person at a terminal sees: a live tree, lines that fit, short ids, relative times, colours only where they belong."""
import re

import pytest

import cli
import harness
import terminal

ORDER = {"id": "order", "steps": [
    {"name": "reserve", "type": "task", "handler": "h", "compensate": {"handler": "undo"}},
    {"name": "charge", "type": "task", "handler": "h", "retry": {"max_attempts": 3, "backoff_ms": 1}},
    {"name": "ok", "type": "approval", "prompt": "Ship?"},
    {"name": "ship", "type": "task", "handler": "h"}]}


@pytest.fixture
def where(dev_server, tenant):
    return {"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant}


@pytest.fixture
def act(api, tenant):
    """Claims the next job and completes it, or fails it with a message."""
    def act(fail=None, retryable=True):
        job = api.post("/api/v1/jobs/claim", {"worker_id": "w", "wait_ms": 20000}, tenant=tenant).json["jobs"][0]
        end = {"error": {"code": "NO", "message": fail, "retryable": retryable}} if fail else {"output": {}}
        r = api.post(f"/api/v1/jobs/{job['job_id']}/{'fail' if fail else 'complete'}", {"lease_token": job["lease_token"], **end}, tenant=tenant)
        assert r.status == 200, r
    return act


@pytest.fixture
def order(api, tenant):
    api.workflow(tenant, "order", ORDER["steps"])
    return api.start(tenant, "order").json["run_id"]


def at_terminal(*args, **kw):
    return terminal.Session([harness.PAWL, *map(str, args)], **kw)


def approve(api, tenant, run_id):
    job = next(s for s in api.get(f"/api/v1/runs/{run_id}", tenant=tenant).json["steps"] if s["name"] == "ok")["job_id"]
    assert api.post(f"/api/v1/approvals/{job}/approve", {}, tenant=tenant).status == 200


def test_watch_draws_a_tree_that_moves_with_the_run(where, api, tenant, act, order):
    watch = at_terminal("run", "watch", order, **where)
    watch.wait_for(r"^└─ · ship +pending")
    act()
    watch.wait_for(r"^├─ ✓ reserve +succeeded +\d")
    act(fail="card declined")
    watch.wait_for(r"^│    attempt 1: NO: card declined")
    act()
    watch.wait_for(r"^├─ ✓ charge +succeeded .*attempt 2")
    watch.wait_for(r"^├─ \S ok +approval")
    approve(api, tenant, order)
    act(fail="no truck", retryable=False)
    watch.wait_for(r"^└─ ✗ ship +failed")
    act()
    assert watch.end() == 1
    lines = watch.screen.text.splitlines()
    assert lines[0].split()[0] == "order" and lines[0].split()[2] == "failed" and order.startswith(lines[0].split()[1])
    assert re.match(r"├─ ✓ reserve +succeeded +.*undone$", lines[1]) and lines[-1] == "     attempt 1: NO: no truck"
    assert len(lines) == 7 and watch.screen.widest <= 80 and watch.screen.styled


def test_watch_of_a_run_taller_than_the_terminal_shows_its_end(where, api, tenant):
    api.workflow(tenant, "long", [{"name": f"s{i}", "type": "transform", "output": i} for i in range(30)])
    watch = at_terminal("run", "watch", api.start(tenant, "long").json["run_id"], rows=10, **where)
    assert watch.end() == 0
    lines = watch.screen.text.splitlines()
    assert len(lines) <= 9 and lines[1] == "├ 23 more steps" and lines[-1].startswith("└─ ✓ s29"), lines


def test_show_reads_at_80_columns(where, api, tenant, act, order):
    act()
    act(fail="the card was declined because of a reason that is much too long for a line of a terminal " * 3)
    code, screen = terminal.pawl("run", "show", order, "--events", **where)
    assert code == 0 and screen.widest == 80
    assert re.search(r"^created +\S+Z  (now|\d+ s ago) by dev$", screen.text, re.M) and re.search(r"^status +\w+$", screen.text, re.M)
    assert re.search(r"^[\d:.]{12}  charge +attempt 1 failed: NO: the card was declined.*…$", screen.text, re.M), screen.text
    assert re.search(r"^[\d:.]{12}  run +created by dev$", screen.text, re.M)


def test_the_timeline_says_what_undoes_a_step(where, api, tenant, act, order):
    act()
    act()
    harness.wait_until(lambda: api.get(f"/api/v1/runs/{order}", tenant=tenant).json["status"] == "waiting", "it waits for a person")
    approve(api, tenant, order)
    act(fail="no truck", retryable=False)
    act()
    lines = cli.pawl("run", "show", order, "--events", **where).out.splitlines()
    assert any(re.fullmatch(r"\S+Z  undo reserve +attempt 1 succeeded", line) for line in lines)
    assert any(re.fullmatch(r"\|- \+ reserve +succeeded .*undone", line) for line in lines)
    assert re.fullmatch(r"\S+Z  run +failed: step ship: NO: no truck", lines[-1])


def test_a_table_fits_and_shortens(where, api, tenant, order):
    api.start(tenant, "order", {"labels": {"env": "prod", "note": "x" * 90}})
    code, screen = terminal.pawl("run", "list", **where)
    titles, newest, oldest = (line.split() for line in screen.text.splitlines())
    assert code == 0 and screen.widest <= 80 and titles == ["ID", "WORKFLOW", "VERSION", "STATUS", "CREATED", "LABELS"]
    assert order.startswith(oldest[0]) and 13 <= len(oldest[0]) < 36 and newest[0] != oldest[0] and "ago" in oldest or "now" in oldest
    assert newest[-2] == "env=prod" and newest[-1].startswith("note=x") and newest[-1].endswith("…")


def test_a_pipe_gets_whole_ids_and_times_and_no_colours(where, order):
    r = cli.pawl("run", "list", **where)
    assert r.rows[1][0] == order and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", r.rows[1][4]) and "\x1b" not in r.out


@pytest.mark.parametrize("variables,coloured", [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)])
def test_colours_can_be_turned_off(where, order, variables, coloured):
    code, screen = terminal.pawl("run", "list", **where, **variables)
    assert code == 0 and screen.styled == coloured


def test_a_terminal_without_utf_8_gets_ascii(where, order):
    code, screen = terminal.pawl("run", "show", order, **where, LC_ALL="C")
    assert code == 0 and re.search(r"^\|- \. charge ", screen.text, re.M) and screen.text.isascii(), screen.text


def test_control_characters_of_others_never_reach_the_terminal(where, api, tenant):
    api.workflow(tenant, "evil", [{"name": "a", "type": "task", "handler": "h"}])
    rid = api.start(tenant, "evil", {"labels": {"l": "\x1b[2Jgone"}, "input": "\x1b]0;title\x07"}).json["run_id"]
    for args in (("run", "list"), ("run", "show", rid)):
        code, screen = terminal.pawl(*args, **where)  # the screen refuses sequences that pawl does not write itself
        assert code == 0 and "[2Jgone" in screen.text


# --- bulk changes ---

def test_bulk_asks_with_the_number_of_runs_and_changes_nothing_without_a_yes(where, api, tenant, order):
    status = lambda: api.get(f"/api/v1/runs/{order}", tenant=tenant).json["status"]
    for answer, code, after in (("n", 1, "running"), ("", 1, "running"), ("y", 0, "cancelled")):
        ask = at_terminal("run", "bulk", "cancel", "--workflow", "order", **where)
        ask.wait_for(r"cancel 1 runs\? \[y/N\]")
        ask.type(answer + "\n")
        assert ask.end() == code and status() == after
        assert ("Nothing was changed" in ask.screen.text) == (code == 1)


def test_bulk_without_a_terminal_needs_a_yes(where, api, tenant, order):
    r = cli.pawl("run", "bulk", "cancel", "--all", **where)
    assert r.code == 2 and "Add --yes to cancel all runs that match" in r.err and r.out == "", r
    assert api.get(f"/api/v1/runs/{order}", tenant=tenant).json["status"] == "running"


@pytest.mark.sqlite("pawl copies files; a database is copied by its own tools")
def test_a_backup_shows_how_far_it_is_and_cleans_up_the_line(tmp_path):
    with harness.server() as server:
        code, screen = terminal.pawl("backup", "--to", tmp_path / "copy.db", PAWL_URL=server.url)
        assert code == 0 and re.fullmatch(r"\S+copy.db  \d+ bytes", screen.text), screen.text
        session = at_terminal("backup", "--to", tmp_path / "copy2.db", PAWL_URL=server.url)
        session.end()
        assert re.search(r"MiB", session.raw)


def test_bench_counts_the_jobs_at_a_terminal(where, api, tenant):
    api.workflow(tenant, "w", [{"name": "a", "type": "task", "handler": "h"}])
    for _ in range(3):
        api.start(tenant, "w")
    bench = at_terminal("bench", "worker", "--queue", "default", "--connections", "1", **where)
    bench.wait_for(r"3 jobs  ")
    bench.process.terminate()
    assert bench.end() == 0 and bench.screen.text == "3 jobs completed"


# --- short ids and names ---

def test_a_unique_prefix_stands_for_an_id(where, api, tenant, order):
    short = order[:13]
    assert cli.pawl("run", "show", short, "--json", **where).json["id"] == order
    assert cli.pawl("run", "show", order[:18].upper(), "--json", **where).json["id"] == order
    r = cli.pawl("run", "cancel", short, **where)
    assert r.code == 0 and r.out == f"{order} cancelled\n"


def test_a_prefix_of_several_ids_lists_them(where, api, tenant, order):
    other = api.start(tenant, "order").json["run_id"]
    r = cli.pawl("run", "cancel", order[:4], **where)
    assert r.code == 1 and "the beginning of several ids" in r.err and {order, other} <= set(r.err.split()) and r.out == "", r
    assert api.get(f"/api/v1/runs/{order}", tenant=tenant).json["status"] == "running"


def test_a_prefix_of_no_id_says_so(where, order):
    r = cli.pawl("run", "show", "dead-beef", **where)
    assert r.code == 1, r  # not the beginning of an id at all: the server says that there is none
    r = cli.pawl("run", "show", "deadbeef", **where)
    assert r.code == 1 and r.err == "pawl: No run has an id that begins with deadbeef\n", r


def test_prefixes_of_other_tenants_runs_find_nothing(where, api, order):
    r = cli.pawl("run", "show", order[:18], **{**where, "PAWL_TENANT": api.tenant()})
    assert r.code == 1 and "No run has an id" in r.err, r


def test_prefixes_are_found_in_a_long_list(where, api, tenant, order):
    harness.together(4, lambda _: [api.start(tenant, "order") for _ in range(60)])
    assert cli.pawl("run", "show", order[:23], "--json", **where).json["id"] == order


def test_an_approval_and_a_webhook_are_found_by_their_prefix(where, api, tenant, act, order):
    act()
    act()
    job = harness.wait_until(lambda: api.get("/api/v1/approvals", tenant=tenant).json["items"], "it waits for a person")[0]["job_id"]
    r = cli.pawl("approval", "approve", job[:13], **where)
    assert r.code == 0 and r.out.startswith(f"{job} approved"), r
    hook = cli.pawl("webhook", "create", "--to", "https://example.com/x", "--event", "run.*", "--json", **where).json["id"]
    assert cli.pawl("webhook", "show", hook[:13], "--json", **where).json["id"] == hook


@pytest.mark.parametrize("args", [("run", "start", "ordre"), ("workflow", "show", "oder"), ("workflow", "archive", "orderr")])
def test_a_name_that_does_not_exist_is_answered_with_the_one_that_was_meant(where, order, args):
    r = cli.pawl(*args, **where)
    assert r.code == 1 and r.err.endswith('Did you mean "order"?\n'), r


def test_a_name_that_resembles_none_gets_no_suggestion(where, order):
    r = cli.pawl("run", "start", "something-else", **where)
    assert r.code == 1 and "Did you mean" not in r.err, r
