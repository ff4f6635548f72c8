"""What deploy/ gives to Prometheus and Grafana: rules that hold their own tests, a sound dashboard, and no metric that pawl does not export."""
import itertools
import json
import re
import subprocess

import pytest
import yaml

import harness

PROMETHEUS = harness.ROOT / "deploy" / "prometheus"
DASHBOARDS = sorted((harness.ROOT / "deploy" / "grafana").glob("*.json"))
VARIABLES = {"pawl.json": {"DS_PROMETHEUS", "instance", "tenant"}, "cluster.json": {"DS_PROMETHEUS", "instance"}}
each_dashboard = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
MANUAL = [harness.ROOT / "docs" / page for page in ("operations.md", "alerts.md")]


def promtool(*arguments):
    """Without promtool this raises and the test fails: the rules are never taken on trust."""
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def rules():
    document = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels(path):
    return [p for p in json.loads(path.read_text())["panels"] if p["type"] != "row"]


def expressions(path):
    """A dashboard's queries, with what Grafana would put in for its variables."""
    found = [t["expr"] for p in panels(path) for t in p["targets"]]
    return [e.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$tenant", ".*") for e in found]


# --- rules ---

def test_the_rules_are_valid():
    promtool("check", "rules", "--lint=all", "--lint-fatal", PROMETHEUS / "alerts.yml")


def test_the_rules_fire_and_stay_silent_as_their_tests_say():
    promtool("test", "rules", PROMETHEUS / "alerts_test.yml")


def test_every_rule_is_tested_firing_and_silent():
    groups = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    cases = [case for group in groups for case in group["alert_rule_test"]]
    for rule in rules():
        severities = [{a["exp_labels"]["severity"] for a in c["exp_alerts"]} for c in cases if c["alertname"] == rule["alert"]]
        assert {rule["labels"]["severity"] in s for s in severities} == {True, False}, rule["alert"]


def test_every_rule_says_how_bad_it_is_and_what_it_is_about():
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}, rule["alert"]


def test_every_runbook_is_a_section_of_the_manual():
    sections = set()
    for page in MANUAL:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        headings = re.findall(r"^#+ (.+)$", text, re.M)
        sections |= {f"docs/{page.name}#" + re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    wanted = {rule["annotations"]["runbook"] for rule in rules()}
    missing = sorted(wanted - sections)
    assert not missing, ", ".join(missing)


# --- dashboards ---

def test_the_dashboards_have_names_of_their_own():
    found = [json.loads(path.read_text()) for path in DASHBOARDS]
    assert {path.name for path in DASHBOARDS} == set(VARIABLES)
    assert len({d["uid"] for d in found}) == len({d["title"] for d in found}) == len(found)


@each_dashboard
def test_panel_ids_are_unique(path):
    ids = [p["id"] for p in json.loads(path.read_text())["panels"]]
    assert len(ids) == len(set(ids)) and all(isinstance(i, int) and i > 0 for i in ids)


@each_dashboard
def test_panels_do_not_overlap(path):
    places = [(p["title"], p["gridPos"]) for p in json.loads(path.read_text())["panels"]]
    for title, at in places:
        assert 0 <= at["x"] and at["x"] + at["w"] <= 24 and at["y"] >= 0 and at["w"] > 0 and at["h"] > 0, title
    for (one, a), (two, b) in itertools.combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or above, (one, two)


@each_dashboard
def test_every_query_goes_to_the_chosen_data_source(path):
    variables = {v["name"]: v for v in json.loads(path.read_text())["templating"]["list"]}
    assert set(variables) == VARIABLES[path.name] and variables["DS_PROMETHEUS"]["type"] == "datasource"
    asking = panels(path) + [v for v in variables.values() if v["type"] == "query"]
    assert all(a["datasource"] == {"type": "prometheus", "uid": "${DS_PROMETHEUS}"} for a in asking)


@each_dashboard
def test_every_query_of_the_dashboard_is_promql(path, tmp_path):
    queries = [{"record": f"query:{i}", "expr": e} for i, e in enumerate(expressions(path))]
    assert queries and not any("$" in q["expr"] for q in queries)
    (tmp_path / "queries.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": queries}]}))
    promtool("check", "rules", tmp_path / "queries.yml")


# --- metrics ---

WORDS = {"and", "or", "unless", "bool", "offset"}


def queried(expression):
    """The names of the series that an expression reads."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    return set(re.findall(r"(?<![\w.:])[a-zA-Z_:][\w:]*(?!\w)(?!\s*\()", bare)) - WORDS


def test_queried_finds_names_and_nothing_else():
    assert queried('sum by (le, x) (rate(a_bucket{b="c{d}"}[5m])) / on (job) (e > 1e6 or 0 * f) unless time() - g:h') == {"a_bucket", "e", "f", "g:h"}


@pytest.mark.parametrize("path, read", [
    (PROMETHEUS / "alerts.yml", lambda _: [r["expr"] for r in rules()]),
    *((path, expressions) for path in DASHBOARDS),
], ids=["alerts", *(path.stem for path in DASHBOARDS)])
def test_every_metric_is_one_that_the_server_exports(path, read, api):
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", api.get("/metrics").raw.decode(), re.M))
    histograms = {name for name, kind in kinds.items() if kind == "histogram"}
    series = (kinds.keys() - histograms) | {name + suffix for name in histograms for suffix in ("_bucket", "_sum", "_count")}
    in_queries = set().union(*map(queried, read(path)))
    # Prose and the queries of variables name metrics too.
    in_text = set(re.findall(r"\bpawl_\w+", path.read_text()))
    # `up` is Prometheus' own.
    missing = sorted((in_queries - series - {"up"}) | (in_text - series - kinds.keys()))
    assert not missing, ", ".join(missing)
