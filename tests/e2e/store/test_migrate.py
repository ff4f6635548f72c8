"""`pawl migrate`: a store that holds everything moves to PostgreSQL and back, and nothing that it answers or does is another."""
import random
import signal
import sys
import threading
import time
import uuid

import pytest

import cli
import harness
import terminal
from harness import ROOT, Server, wait_until
from inspect_store import assert_healthy
from whole_store import HEADERS, WholeStore

sys.path.append(str(ROOT / "tests/tools"))
import with_postgres  # noqa: E402

KEYS = {"PAWL_ROOT_KEY": harness.ROOT_KEY}


@pytest.fixture(scope="module")
def postgres():
    with with_postgres.start() as cluster:
        yield cluster


class Place:
    """A store, and a server on it from time to time."""

    def __init__(self, folder, name, url=None):
        (folder / name).mkdir()
        self.url = url or f"sqlite:{folder / name / 'pawl.db'}"
        self.server = Server(folder / name, "--allow-private-addresses", dev=False, env=KEYS, store=self.url)

    def __enter__(self):
        self.server.start()
        return self.server.client(headers=HEADERS)

    def __exit__(self, *error):
        if error[0] is not None:
            print(self.server.log()[-4000:])
        self.server.close()


@pytest.fixture
def places(tmp_path, postgres):
    made = [Place(tmp_path, "file"), Place(tmp_path, "postgres", f"{postgres.url}&schema=e{uuid.uuid4().hex[:20]}"), Place(tmp_path, "back")]
    yield made
    for place in made:
        place.server.close()


def migrate(source, target, *flags):
    return cli.pawl("migrate", "--from", source.url, "--to", target.url, *flags)


def move(source, target):
    done = migrate(source, target, "--json")
    assert done.code == 0, done
    return done.json


def differences(before, after):
    """The answers that are not the same; empty when all are."""
    return {place: (before.get(place), after.get(place)) for place in {*before, *after} if before.get(place) != after.get(place)}


def test_a_store_with_everything_moves_to_postgresql_and_back(places, receiver):
    file, postgres, back = places
    with file as api:
        store = WholeStore(api).fill(receiver.answers("/hook", (200, b"")))
    with file as api:  # as it is after a restart
        store.api = api
        before = store.answers()
    there = move(file, postgres)
    with postgres as api:
        store.api = api
        assert differences(before, store.answers()) == {}
        assert_healthy(api)
    again = move(postgres, back)
    assert again["rows"] == there["rows"] > 200
    with back as api:
        store.api = api
        assert differences(before, store.answers()) == {}
        assert_healthy(api)
    assert len(there["tables"]) > 50 and {t["table"] for t in there["tables"]} >= {"runs", "audit", "secrets"}


@pytest.mark.parametrize("moves", [1, 2], ids=["on PostgreSQL", "and back on SQLite"])
def test_everything_that_waited_goes_on_after_the_move(places, receiver, moves):
    with places[0] as api:
        store = WholeStore(api).fill(receiver.answers("/hook", (200, b"")))
        cursor = store.stream("limited")[-1][0]
    for source, target in list(zip(places, places[1:]))[:moves]:
        move(source, target)
    with places[moves] as api:
        store.api = api
        store.assert_replays()
        store.assert_goes_on()
        for tenant in store.tenants():
            store.end_with(tenant)
        seen, whole = store.stream("limited", cursor), store.stream("limited")
        assert whole[-len(seen):] == seen and len(whole) > len(seen) > 5, "a reader of events continues where it was"
        assert len({data["id"] for _, _, data in whole}) == len(whole)
        store.settle()
        assert api.get("/api/v1/audit/verify").json["ok"] is True
        assert_healthy(api)


def start_runs(api, count):
    """Of four clients at once; what each key has started."""
    tenant = api.tenant(max_concurrent_runs=7, at_limit="queue")
    api.workflow(tenant)
    started = harness.together(4, lambda i: {f"{i}-{n}": api.start(tenant, key=f"{i}-{n}").json["run_id"] for n in range(count // 4)})
    return tenant, {key: run for part in started for key, run in part.items()}


def killed_copy(source, target, seconds):
    """Exit code and progress of a copy that is killed after this time, or else after its first progress, unless it ends before; and the
    seconds until its first progress."""
    begun = time.monotonic()
    copying = cli.popen("migrate", "--from", source.url, "--to", target.url)
    killer, said, first = threading.Timer(seconds or 60, copying.kill), "", None
    killer.start()
    for line in copying.stderr:
        said += line
        first = first or time.monotonic() - begun
        if seconds is None:
            copying.kill()
    copying.communicate()
    killer.cancel()
    # PostgreSQL may not have noticed yet that the one before is dead.
    assert copying.returncode in (0, -signal.SIGKILL) or "in use by another pawl" in said, said
    return copying.returncode, said, first


def refusal(place):
    """What a server says that does not open the store, once the session of its last owner has ended."""
    def look():
        done = cli.pawl("doctor", "--store", place.url)
        assert done.code != 0, done
        return None if "in use by another pawl" in done.err else done.err
    return wait_until(look, "a refusal")


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_copy_that_is_killed_again_and_again_becomes_whole(places, way):
    file, postgres, back = places
    with file as api:
        tenant, runs = start_runs(api, 800)
    if way == "back":
        move(file, postgres)
    source, target = (file, postgres) if way == "there" else (postgres, back)
    rng, kills, refused, longest, code = random.Random(16), 0, 0, 0, None
    while code != 0:
        code, said, first = killed_copy(source, target, rng.uniform(0, longest) if kills >= 3 else None)
        longest = longest * 1.06 if kills >= 3 else first / 2  # on any machine many kills come before one is late enough for a whole copy
        kills += code == -signal.SIGKILL
        if code != 0 and "copied" in said and "compared workflows" not in said and refused < 3:
            assert "The store is an unfinished copy" in refusal(target)
            refused += 1
    assert kills >= 10 and refused > 0
    with target as api:
        assert_healthy(api)
        shown = api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).json
        assert (shown["active_runs"], shown["queued_runs"]) == (7, len(runs) - 7)
        for key, run in runs.items():
            again = api.start(tenant, key=key)
            assert (again.json["run_id"], again.json["created"]) == (run, False)


# --- the command ---

@pytest.fixture
def small(places):
    """A source with one run, and its key."""
    with places[0] as api:
        tenant = api.tenant()
        api.workflow(tenant)
        assert api.start(tenant, key="k").status == 200
    return places


def set_up(place):
    """With one shard, as only such a store is copied whole."""
    assert cli.pawl("cluster", "init", "--shards", "1", "--store", place.url).code == 0


def test_a_store_that_a_server_has_open_is_refused(small):
    file, postgres, _ = small
    set_up(postgres)
    with file:
        done = migrate(file, postgres)
        assert done.code == 1 and "in use by another pawl (process" in done.err, done
    with postgres as api:  # a server may have set the target up
        tenant = api.tenant()
        done = migrate(file, postgres)
        assert done.code == 1 and "in use by another pawl" in done.err, done
    done = migrate(file, postgres)
    assert done.code == 1 and "The target already has data" in done.err and done.out == "", done
    with postgres as api:
        assert api.get(f"/api/v1/tenants/{tenant}", tenant=tenant).status == 200


def test_a_target_that_a_server_has_only_set_up_is_taken(small):
    file, postgres, _ = small
    set_up(postgres)
    with postgres:
        pass
    assert move(file, postgres)["copied"] > 10


def test_the_report_lists_the_tables_and_says_when_there_was_nothing_to_do(small):
    file, postgres, _ = small
    first, again = migrate(file, postgres), migrate(file, postgres)
    assert first.code == again.code == 0, (first, again)
    titles, *rows = first.rows
    assert titles == ["TABLE", "ROWS", "SHA-256"] and "Copied " in first.out and "runs" in [r[0] for r in rows if r]
    assert "The copy was finished before. Both stores have the same" in again.out and first.out.split("Copied")[0] == again.out.split("The copy")[0]
    assert "pawl: copied runs, " in first.err and "pawl: compared runs, " in first.err and "copied" not in again.err
    with postgres as api:
        assert api.tenant()
    moved_on = migrate(file, postgres)
    assert moved_on.code == 1 and "a server has used one of the two stores since. Nothing was changed." in moved_on.err, moved_on


def test_a_copy_shows_how_far_it_is_at_a_terminal(small):
    file, postgres, _ = small
    session = terminal.Session([harness.PAWL, "migrate", "--from", file.url, "--to", postgres.url])
    assert session.end() == 0 and "Copied " in session.screen.text and "%" not in session.screen.text, session.screen.text
    assert " rows/s" in session.raw and "pawl: copied" not in session.raw


def test_mistakes_are_named(small, tmp_path):
    file, postgres, _ = small
    for args, code, said in (
            (["--from", file.url, "--to", file.url], 2, "the same store"),
            (["--from", f"sqlite:{tmp_path}/none.db", "--to", postgres.url], 1, "Cannot open"),
            (["--from", f"{postgres.url}none", "--to", f"sqlite:{tmp_path}/new.db"], 1, "is no store"),
            (["--from", file.url, "--to", "mysql:x"], 2, "must be given as sqlite:PATH or postgres://USER@HOST/DATABASE"),
            (["--from", file.url], 2, "--to")):
        done = cli.pawl("migrate", *args)
        assert done.code == code and said in done.err and done.out == "", done
    assert not (tmp_path / "none.db").exists() and not (tmp_path / "new.db").exists()


def test_a_store_of_several_shards_is_not_copied_in_part(small, postgres):
    file, sharded, back = small
    move(file, sharded)
    postgres.rows(f"INSERT INTO {sharded.url.rsplit('=', 1)[1]}.shards (shard, version, epoch) VALUES (1, 0, 0)")
    done = cli.pawl("migrate", "--from", f"{sharded.url}&shard=0", "--to", back.url)
    assert done.code == 1 and "has 2 shards, which are copied together: leave shard= out of the URL" in done.err, done
