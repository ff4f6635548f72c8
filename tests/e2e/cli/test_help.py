"""The help of the command line, what it says about mistakes, and that every verb is documented and tested."""
import pathlib
import re

import pytest

import cli
import harness
import openapi
from cli import pawl

REFERENCE = harness.ROOT / "docs" / "cli.md"
# Options whose words the server knows too: the schema that has them, and the words that only the client knows.
CHOICES = [
    ("run list", "status", "RunStatus", set()), ("run bulk", "status", "RunStatus", set()), ("run start", "at-limit", "AtLimit", set()),
    ("tenant set", "at-limit", "AtLimit", set()), ("key create", "role", "Role", set()), ("approval list", "status", "ApprovalStatus", {"all"}),
    ("schedule apply", "overlap", "Schedule/properties/overlap", set()), ("tenant set", "gate", "Gate/properties/kind", set()), ("tenant set", "gate-policy", "Gate/properties/policy", set()),
]


def test_every_verb_has_help_with_its_arguments_and_exit_codes():
    for verb, line in cli.verbs().items():
        r = cli.help_of(verb)
        assert r.code == 0 and r.out.startswith(f"usage: {line}") and ("--json" in r.out or verb in cli.local_verbs()) and "Exit codes: 0 done" in r.out and r.err == "", r


def test_every_verb_has_an_end_to_end_test():
    sources = "".join(path.read_text() for path in pathlib.Path(__file__).parents[1].rglob("test_*.py"))
    called = lambda verb: re.search(r"[(\[]\s*" + r",\s*".join(f'"{word}"' for word in verb.split()) + r'[",\s)]', sources)
    verbs = cli.verbs()
    assert len(verbs) > 70 and [verb for verb in verbs if not called(verb)] == []


def test_the_reference_page_lists_every_verb_as_the_help_does():
    listed = re.findall(r"^\| `(pawl [^`]+)` \| (.*) \|$", REFERENCE.read_text().replace(r"\|", "|"), re.M)
    assert listed == [(line, cli.summary(verb)) for verb, line in cli.verbs().items()]


@pytest.mark.parametrize("words", [(), ("run",), ("run", "start"), ("entity", "type", "set"), ("worker",), ("serve",)], ids=" ".join)
def test_help_of_a_command_is_the_same_as_the_command_with_help(words):
    asked, flagged = pawl("help", *words), pawl(*words, "--help")
    assert asked.code == 0 and asked.err == "" and asked.out == flagged.out == pawl(*words, "-h").out


def test_help_of_a_group_of_verbs_lists_only_these():
    r = pawl("help", "entity", "type")
    assert r.code == 0 and "pawl entity type set TYPE" in r.out and "pawl entity signal" not in r.out, r


def test_no_line_of_the_help_is_wider_than_a_terminal():
    texts = [cli.help_of(words).out for words in ["serve", *cli.commands(), *cli.verbs()]]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("args,said", [
    (("vesion",), 'Did you mean "version"?'), (("rnu", "list"), 'Unknown command: rnu. Did you mean "run"?'), (("sevre",), 'Did you mean "serve"?'), (("run", "shwo", "x"), 'Did you mean "run show"?'),
    (("entity", "type", "lst"), 'Did you mean "entity type list"?'), (("run", "list", "--lmit", "3"), "Unknown option --lmit. Did you mean --limit?"),
    (("run", "list", "--status", "runing"), 'Unknown status "runing". Did you mean "running"?'), (("run", "show"), "Missing argument: ID"),
    (("run", "show", "a", "b"), "Unexpected argument: b"), (("key", "create"), "Missing option: --role ROLE"), (("run", "list", "--limit"), "Missing value: --limit N"),
    (("key", "create", "--role", "king"), 'Unknown role "king". Allowed: admin, operator, approver, worker, viewer'), (("run",), "Missing verb: pawl run VERB"),
    (("run", "start", "w", "--wait-ms", "x"), '--wait-ms must be a whole number of milliseconds from 0 to 604800000, not "x"'), (("serve", "--lsiten", "x"), "Did you mean --listen?"),
    (("worker", "--queue", "q"), "Missing command: end with -- COMMAND [ARG...]"), (("run", "list", "--url", "ftp://x"), '"ftp://x" is not a valid HTTP URL'),
])
def test_a_mistake_is_named_with_what_was_probably_meant(args, said):
    r = pawl(*args)
    assert r.code == 2 and r.err.startswith("pawl: ") and said in r.err and r.out == "", r


def test_a_mistake_in_an_option_points_to_the_help_of_the_verb():
    r = pawl("entity", "type", "set", "t")
    assert r.err.splitlines()[1:] == ["usage: pawl entity type set TYPE --queue QUEUE --handler HANDLER [OPTIONS]", "Run `pawl entity type set --help` for the options."], r


@pytest.mark.parametrize("verb,option,schema,own", CHOICES)
def test_the_words_of_a_choice_are_those_of_the_server(verb, option, schema, own):
    known = openapi.resolved(openapi.lookup(f"#/components/schemas/{schema}"))["enum"]
    assert cli.choices(*cli.options(verb)[option]) == {word for word in known if word is not None} | own


def test_the_words_of_every_choice_are_compared_with_the_server():
    found = {(verb, name) for verb in cli.verbs() for name, shown in cli.options(verb).items() if cli.choices(*shown)}
    assert found == {(verb, option) for verb, option, *_ in CHOICES}
