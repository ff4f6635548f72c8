"""The benchmark works: one round of every part with tiny numbers, and what is made of its results. Nothing here looks at times."""
import functools
import http.client
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import harness

BENCH = harness.ROOT / "bench"
TOOLS = pathlib.Path(harness.PROGRAM).parent / "bench"
PARTS = ["limits", "starts", "payloads", "workers", "admission", "gate", "tenants", "signals", "entities", "approvals", "mixed", "cost", "growth", "cluster"]
PATIENCE_S = 10 * harness.PATIENCE_S

pytestmark = pytest.mark.slow


def bench(program, *options):
    return subprocess.run([sys.executable, "-B", BENCH / program, *map(str, options)], capture_output=True, text=True, timeout=PATIENCE_S)


def run(out, *options):
    return bench("run.py", "--pawl", harness.PROGRAM, "--tools", TOOLS, "--dir", out.parent, "--quick", "--out", out, *options)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """(file, what was printed) of one round of everything."""
    out = tmp_path_factory.mktemp("bench") / "results.jsonl"
    done = run(out)
    assert done.returncode == 0, done.stderr[-3000:]
    return out, done


def lines(out):
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_every_part_measures_something_and_has_rows_in_the_table(results):
    out, done = results
    measured = {line["part"] for line in lines(out) if line["kind"] == "measure"}
    figures = {line["part"] for line in lines(out) if line["kind"] == "figure"}
    assert measured == figures == set(PARTS)
    assert all(f"-- {part}\n" in done.stdout for part in PARTS)


def test_every_measurement_says_how_it_was_made(results):
    first, *rest = lines(results[0])
    assert first["kind"] == "run" and first["cores"] > 0 and first["commit"] and "--quick" in first["command"]
    loads = [line for line in rest if line["kind"] == "measure" and "sent" in line]
    assert len(loads) > 40
    for line in loads:
        assert line["command"].startswith("load ") and line["errors"] == 0 and sum(line["codes"].values()) == line["ops"] > 0, line
        assert line["p50_us"] <= line["p90_us"] <= line["p99_us"] <= line["p999_us"] <= line["max_us"] * 1.01, line
    assert any("asked_per_s" in line and "--rate" in line["command"] for line in loads)


def test_progress_is_shown_for_every_measurement(results):
    out, done = results
    for line in lines(out):
        if line["kind"] == "measure":
            assert f"{line['part']} 1/1] {line['what']}: " in done.stderr


def test_a_report_goes_between_the_markers_of_a_page_and_its_plots_are_svg(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n")
    done = bench("report.py", results[0], "--into", page, "--svg", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert all(f"`make bench ONLY={part}`" in text for part in PARTS)
    for name in ("starts", "latency", "growth"):
        assert f"](plots/{name}.svg)" in text
        assert xml.etree.ElementTree.parse(tmp_path / "plots" / f"{name}.svg").getroot().tag.endswith("svg")


def test_the_tables_of_a_cluster_go_into_their_page_with_every_formula(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- cluster: begin -->\nold\n<!-- cluster: end -->\nafter\n")
    done = bench("scaling.py", results[0], "--into", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    needed = [line.split(" | ") for line in text.split("| needed |")[1].splitlines()[2:] if line.startswith("| ")]
    assert len(needed) > 10 and all(much and source.rstrip(" |") for _, much, source in needed)


def test_a_page_without_markers_is_left_alone(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    done = bench("scaling.py", results[0], "--into", page)
    assert done.returncode == 1 and "cluster: begin" in done.stderr and page.read_text() == "nothing\n"


def test_a_steady_report_has_no_rates_and_latencies(results, tmp_path):
    done = bench("report.py", results[0], "--steady", "--svg", tmp_path)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ") and not line.startswith("| figure")]
    assert done.returncode == 0 and any("CPU time" in row for row in rows) and any("bytes kept" in row for row in rows)
    assert not [row for row in rows if "/s |" in row or " p50 " in row or " p99 " in row]
    assert (tmp_path / "starts.svg").exists() and not (tmp_path / "latency.svg").exists()


def test_a_run_that_did_not_finish_makes_no_report(results, tmp_path):
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(line + "\n" for line in results[0].read_text().splitlines()[:5]))
    done = bench("report.py", cut)
    assert done.returncode == 1 and "has no finished run" in done.stderr


def test_samples_of_perf_become_a_flame_graph(tmp_path):
    samples = tmp_path / "samples"
    samples.write_text("pawl \n\t7f01 sqlite3_step (/opt/pawl)\n\t7f00 writer_main (/opt/pawl)\n\n"
                       "pawl \n\tffff ksys_write ([kernel.kallsyms])\n\t7f00 http_turn (/opt/pawl)\n\n")
    done = bench("flame.py", "--samples", samples, "--out", tmp_path / "flame.svg")
    assert done.returncode == 0 and "2 samples" in done.stdout and "SQLite 50%" in done.stdout and "kernel 50%" in done.stdout, done
    titles = [t.text for t in xml.etree.ElementTree.parse(tmp_path / "flame.svg").iter("{http://www.w3.org/2000/svg}title")]
    assert "pawl 100.0%" in titles and "writer_main 50.0%" in titles and "sqlite3_step 50.0%" in titles


PEERS = [("pawl", "W1-start", 64, 30000, 4000), ("restate", "W1-start", 64, 5000, 20000), ("bullmq-always", "W1-start", 64, 20000, 8000),
         ("pawl", "W3-e2e-3steps", 16, 5000, 9000), ("restate", "W3-e2e-3steps", 16, 400, 60000), ("bullmq-everysec", "W3-e2e-3steps", 16, 2500, 9000),
         ("pawl", "W4-burst100-limit2", 100, 1, 7000), ("cordum-like-everysec", "W4-burst100-limit2", 100, 1, 700000),
         ("pawl-postgres", "W1-start", 64, 9000, 9000), ("dbos", "W1-start", 64, 2500, 40000), ("pg-boss", "W1-start", 64, 2700, 36000),
         ("graphile-worker", "W1-start", 64, 10000, 65000)]


@pytest.fixture
def peers(tmp_path):
    """A harness whose results are there already."""
    folder = tmp_path / "peers"
    (folder / "results").mkdir(parents=True)
    (folder / "run.sh").write_text('#!/bin/sh\ntest -x "$PAWL" && echo "$1 $PEERS_SECS" >> calls && { [ -z "$2" ] || cp "$2" spec.json; }\n')
    (folder / "run.sh").chmod(0o755)
    for peer in {row[0] for row in PEERS}:
        rows = [dict(zip(("peer", "workload", "conc", "rate", "p99_us"), row)) for row in PEERS if row[0] == peer]
        (folder / "results" / f"{peer}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_peers_are_run_by_their_own_harness_and_compared(tmp_path, peers):
    done = run(tmp_path / "out.jsonl", "--only", "peers", "--peers", peers)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in (peers / "calls").read_text().splitlines()] == ["limits", "spec", "restate", "bullmq", "bullmq-always", "cordum-like"]
    figures = {(row["figure"], row["target"]): row for row in lines(tmp_path / "out.jsonl") if row["kind"] == "figure"}
    assert figures["W1 start, 64 connections: pawl", ">= 5 x restate"]["met"] is True
    assert figures["W1 start, 64 connections: pawl", ">= 1.8 x bullmq-always"]["met"] is False
    assert figures["W4 burst of 100, p99: pawl", "<= 1/60 x cordum-like-everysec"]["met"] is True


def test_peers_on_postgresql_are_compared_with_pawl_on_postgresql(tmp_path, peers):
    done = run(tmp_path / "out.jsonl", "--only", "peers_postgres", "--peers", peers)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in (peers / "calls").read_text().splitlines()] == ["spec", "dbos", "pg-boss", "graphile-worker"]
    assert "postgres:///" in " ".join(json.loads((peers / "spec.json").read_text())["cmd"])
    met = {row["target"]: row["met"] for row in lines(tmp_path / "out.jsonl") if row["kind"] == "figure" and row["target"]}
    assert met == {"> 1 x dbos": True, "> 1 x pg-boss": True, "> 1 x graphile-worker": False}


def test_what_the_peers_harness_is_told_to_send_is_accepted(tmp_path, peers):
    run(tmp_path / "out.jsonl", "--only", "peers", "--peers", peers)
    spec = json.loads((peers / "spec.json").read_text())
    with harness.server("--dev", tls=False) as server:
        def send(request, method):
            fill = functools.reduce(lambda text, place: text.replace(place, "7"), ("{i}", "{c}", "{u}", "{burst}"), json.dumps(request))
            request = json.loads(fill)
            headers = {"Content-Type": "application/json"} if method == "PUT" else {}
            headers |= dict(line.split(": ") for line in request.get("headers", []))
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
            client.request(method, request["path"], request["body"], headers)
            return client.getresponse().status
        assert [send(request, "PUT") for request in (*spec["setup"], *spec["before_burst"])] == [200] * 5
        assert [send(spec[name], "POST") for name in ("start", "dup", "hot", "burst")] == [200] * 4


def test_a_peers_harness_that_measured_refusals_is_not_believed(tmp_path, peers):
    (peers / "results" / "pawl.jsonl").write_text(json.dumps({"peer": "pawl", "workload": "W1-start", "conc": 64, "rate": 1e5, "ops": 9, "codes": {"415": 9}}))
    done = run(tmp_path / "out.jsonl", "--only", "peers", "--peers", peers)
    assert done.returncode == 1 and "answers by status {'415': 9}, expected {'200': 9}" in done.stderr, done.stderr


def test_what_was_measured_before_a_failure_is_shown(tmp_path):
    done = run(tmp_path / "out.jsonl", "--only", "limits,peers")
    assert done.returncode == 1 and "bench: peers: " in done.stderr
    assert "-- limits\n" in done.stdout and "-- peers" not in done.stdout
    assert {line["part"] for line in lines(tmp_path / "out.jsonl") if line["kind"] == "figure"} == {"limits"}


@pytest.mark.parametrize("options, says", [
    (["--only", "starts,nonsense"], "unknown part 'nonsense'"),
    (["--growth", "5,3"], "in rising order"),
    (["--peers", "/nowhere"], "has no run.sh"),
    (["--only", "peers"], "need --peers FOLDER"),
    (["--seconds", "0"], "--seconds is 0.1 to 600"),
])
def test_wrong_options_are_explained(tmp_path, options, says):
    done = run(tmp_path / "out.jsonl", *options)
    assert done.returncode != 0 and says in done.stderr, done.stderr


@pytest.mark.parametrize("options, says", [
    (["--port", "1"], "127.0.0.1:1: Connection refused"),
    (["--port", "99999"], "--port needs a number from 1 to 65535"),
    (["--port", "1", "--rate", "5", "--burst"], "--rate needs a window"),
    (["--port", "1", "--path", "/{v}"], "{v} needs --values FILE"),
    (["--port", "1", "--values", "/dev/null"], "/dev/null has no lines"),
    (["--nonsense"], "usage: load"),
])
def test_the_load_generator_explains_what_is_wrong(options, says):
    done = subprocess.run([TOOLS / "load", *options], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and done.stdout == "" and says in done.stderr, done


def test_values_of_different_lengths_are_refused(tmp_path):
    (tmp_path / "values").write_text("one\nthree\n")
    done = subprocess.run([TOOLS / "load", "--port", "1", "--values", tmp_path / "values"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and "differs in length from the first" in done.stderr, done
