"""Definitions in YAML: what JSON would read, nothing else; and graphs of workflows."""
import json
import xml.etree.ElementTree

import pytest

import terminal
from cli import pawl

TASK = "steps:\n  - {name: a, type: transform, output: OUT}\n"


@pytest.fixture
def run(dev_server, tenant):
    return lambda *args, **kw: pawl(*args, **{"PAWL_URL": dev_server.url, "PAWL_TENANT": tenant, **kw})


def output_of(run, tmp_path, value):
    path = tmp_path / "w.yaml"
    path.write_text("id: w\n" + TASK.replace("OUT", value))
    assert run("workflow", "apply", path).code == 0
    return run("workflow", "show", "w", "--json").json["definition"]["steps"][0]["output"]


@pytest.mark.parametrize("written,read", [
    ("1", 1), ("-0.5e3", -500.0), ("1.0", 1.0), ("true", True), ("null", None), ("yes", "yes"), ("No", "No"), ("0x10", "0x10"), ("1_000", "1_000"), ("01", "01"), ("+1", "+1"),
    (".5", ".5"), ("True", "True"), ("~", "~"), ("2026-11-16", "2026-11-16"), ("'1'", "1"), ('"true"', "true"), ("text", "text"), ("9007199254740993", 9007199254740993),
    ("[1, two, {three: 3}]", [1, "two", {"three": 3}]), ('"a\\nb\\u00e4"', "a\nbä"), ("{}", {}), ("[]", []), ("''", ""),
])
def test_a_value_is_what_json_would_read(run, tmp_path, written, read):
    found = output_of(run, tmp_path, written)
    assert found == read and type(found) is type(read)


def test_yaml_and_json_make_the_same_version(run, tmp_path):
    definition = {"id": "w", "description": "two\nlines", "steps": [{"name": "a", "type": "task", "handler": "h", "input": {"n": "${input.n}"}}]}
    (tmp_path / "w.json").write_text(json.dumps(definition))
    (tmp_path / "w.yml").write_text("id: w\ndescription: |-\n  two\n  lines\nsteps:\n  - name: a\n    type: task\n    handler: h\n    input:\n      n: ${input.n}\n")
    assert run("workflow", "apply", tmp_path / "w.json").out == "w version 1 (new)\n"
    assert run("workflow", "apply", tmp_path / "w.yml").out == "w version 1 (unchanged)\n"
    assert run("workflow", "apply", "-", stdin=(tmp_path / "w.yml").read_text()).out == "w version 1 (unchanged)\n"
    assert run("workflow", "validate", tmp_path / "w.yml").out == "valid\n"


@pytest.mark.parametrize("text,said", [
    ("id: w\nid: v\n", ':2:1: the name "id" is used twice'), ("a: &x 1\nb: *x\n", ":1:4: anchors and aliases are not allowed"), ("b: *x\n", "anchors and aliases"),
    ("a: !!python/object 1\n", "tags are not allowed"), ("id: w\n---\nid: v\n", "more than one document"), ("", "is empty"), ("# only a comment\n", "is empty"),
    ("? [1]\n: 2\n", "a name must be a text"), ("[" * 100 + "]" * 100, "nested too deeply"), ("a: [1\n", ":2:1: "), ("a: b: c\n", ":1:5: "), ("a: \"x\\0y\"\n", "NUL characters"),
    ("a: \tb\n\t- c\n", ": "), ("steps: []\n", "has no id"),
])
def test_what_json_cannot_say_is_refused_with_its_place(run, tmp_path, text, said):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    r = run("workflow", "apply", path)
    assert r.code in (1, 2) and said in r.err and "bad.yaml" in r.err and r.out == "", r


def test_bytes_that_are_not_utf_8_are_refused(run, tmp_path):
    (tmp_path / "bad.yaml").write_bytes(b"id: \xff\xfe\n")
    r = run("workflow", "apply", tmp_path / "bad.yaml")
    assert r.code == 1 and "bad.yaml:" in r.err, r


# --- graphs ---

STEPS = [{"name": "lookup", "type": "task", "handler": "orders.lookup"},
         {"name": "ok", "type": "approval", "needs": ["lookup"], "when": "steps.lookup.output.amount > 100", "prompt": "Pay <b>?"},
         {"name": "stock", "type": "task", "handler": "stock.reserve", "needs": ["lookup"], "compensate": {"handler": "stock.release"}},
         {"name": "pay", "type": "task", "handler": "pay", "needs": ["ok", "stock"]}]


def test_a_graph_shows_what_each_step_needs(run, api, tenant, dev_server):
    api.workflow(tenant, "w", STEPS)
    assert run("workflow", "graph", "w").out.splitlines() == [
        "1   lookup (task)  orders.lookup", "2   ok (approval)  <- lookup  when steps.lookup.output.amount > 100",
        "    stock (task)  <- lookup  stock.reserve  undo stock.release", "3   pay (task)  <- ok, stock  pay"]
    code, screen = terminal.pawl("workflow", "graph", "w", PAWL_URL=dev_server.url, PAWL_TENANT=tenant)
    assert code == 0 and "pay (task)  ← ok, stock" in screen.text and screen.widest <= 80


def test_steps_without_needs_are_a_chain(run, api, tenant):
    api.workflow(tenant, "chain", [{"name": n, "type": "transform", "output": 1} for n in "abc"])
    assert [line.split("  <- ")[1:] for line in run("workflow", "graph", "chain").out.splitlines()] == [[], ["a"], ["b"]]


def test_a_graph_as_svg_is_xml_with_a_box_for_each_step(run, api, tenant):
    api.workflow(tenant, "w", STEPS)
    root = xml.etree.ElementTree.fromstring(run("workflow", "graph", "w", "--svg").out)
    ns = "{http://www.w3.org/2000/svg}"
    assert root.tag == ns + "svg" and [g.find(ns + "title").text for g in root.findall(ns + "g")] == ["lookup", "ok", "stock", "pay"]
    assert len(root.findall(ns + "path")) == 4
    boxes = [(int(r.get("x")), int(r.get("y"))) for r in root.iter(ns + "rect")]
    assert len(set(boxes)) == 4
