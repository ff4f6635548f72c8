"""docs/openapi.yaml as a judge of live answers."""
import functools
import json
import pathlib
import re
import subprocess
import warnings

import jsonschema
import yaml

import harness

METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
PLAIN_HEADERS = {"date", "content-type", "content-length", "connection", "content-security-policy", "transfer-encoding"}  # HTTP's own
SAID_OF_ALL = {"cache-control", "x-content-type-options"}  # described once, for every answer


@functools.lru_cache(maxsize=None)
def document():
    return yaml.load((harness.ROOT / "docs/openapi.yaml").read_text(), yaml.CSafeLoader)


def lookup(ref):
    """What '#/components/…' points to."""
    node = document()
    assert ref.startswith("#/"), ref
    for part in ref[2:].split("/"):
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def resolved(node):
    while isinstance(node, dict) and "$ref" in node:
        node = lookup(node["$ref"])
    return node


def operations():
    """{(METHOD, template): operation}"""
    return {(method.upper(), path): item[method] for path, item in document()["paths"].items() for method in METHODS if method in item}


@functools.lru_cache(maxsize=None)
def route_table():
    """Routes with their parameters, and errors, as the binary has them: see tests/tools/print_routes.c."""
    program = pathlib.Path(harness.PROGRAM).parent / "tests/print_routes"
    table = json.loads(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout)
    # The console, and the redirects to a provider and back, are for browsers, not a part of the API: docs/console.md describes them.
    return {**table, "routes": [r for r in table["routes"] if r["path"] != "/" and not r["path"].startswith(("/console", "/api/v1/oidc-"))]}


def routes_of_the_server():
    """(METHOD, pattern) of every route, with {} for a variable part."""
    return [(r["method"], r["path"]) for r in route_table()["routes"]]


def unnamed(template):
    return re.sub(r"\{[^}]*\}", "{}", template)


@functools.lru_cache(maxsize=None)
def template_of(method, path):
    """The template that a concrete path belongs to: the one with the most literal parts."""
    parts = path.split("?")[0].split("/")

    def fits(template):
        want = template.split("/")
        return len(want) == len(parts) and all(w.startswith("{") or w == p for w, p in zip(want, parts))

    found = [t for m, t in operations() if m == method and fits(t)]
    return min(found, key=lambda t: t.count("{"), default=None)


@functools.lru_cache(maxsize=None)
def validator(pointer):
    """For the schema at a pointer into the document."""
    schema = {"$ref": pointer}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        resolver = jsonschema.RefResolver.from_schema(document())
        return jsonschema.Draft202012Validator(schema, resolver=resolver, format_checker=jsonschema.FormatChecker())


def escape(part):
    return part.replace("~", "~0").replace("/", "~1")


def faults(pointer, value):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator(pointer).iter_errors(value)]


def response_pointer(method, template, status):
    """Where the answer is described: its own status, or the default."""
    base = f"#/paths/{escape(template)}/{method.lower()}/responses"
    responses = lookup(base)
    name = str(status) if str(status) in responses else "default"
    assert name in responses, f"{method} {template} does not know of {status}"
    pointer = f"{base}/{name}"
    while "$ref" in lookup(pointer):
        pointer = lookup(pointer)["$ref"]
    return pointer


def validate(reply, method, template):
    """Fails unless status, headers and body are as the document says for this operation."""
    where = f"{method} {template} {reply.status}"
    pointer = response_pointer(method, template, reply.status)
    response = lookup(pointer)
    headers = {name.lower(): name for name in response.get("headers", {})}
    for low, name in headers.items():
        header = resolved(response["headers"][name])
        if low not in reply.headers:
            assert not header.get("required"), f"{where}: no {name}"
            continue
        value = reply.headers[low]
        schema = header["schema"]
        value = int(value) if schema.get("type") == "integer" else value
        jsonschema.Draft202012Validator(schema).validate(value)
    unknown = set(reply.headers) - set(headers) - PLAIN_HEADERS - SAID_OF_ALL
    assert not unknown, f"{where}: {unknown} are not described"
    if reply.status == 304:
        assert reply.raw == b"" and reply.header("Content-Type") is None, f"{where}: it has no content"
        return
    media_type = (reply.header("Content-Type") or "").split(";")[0]
    assert media_type in response["content"], f"{where}: {media_type}"
    if media_type == "application/json" or media_type.endswith("+json"):
        wrong = faults(f"{pointer}/content/{escape(media_type)}/schema", json.loads(reply.raw))
        assert not wrong, f"{where}: {wrong} in {reply.raw[:500]!r}"


def validate_request(body, method, template):
    """Fails when a body that the server took is none that the document allows."""
    operation = lookup(f"#/paths/{escape(template)}/{method.lower()}")
    if "requestBody" not in operation:
        return
    wrong = faults(f"#/paths/{escape(template)}/{method.lower()}/requestBody/content/application~1json/schema", body)
    assert not wrong, f"{method} {template}: the server takes {body!r}, the document does not: {wrong}"


class JudgedClient(harness.Client):
    """Every answer is validated; seen notes which operation answered with which status."""

    def __init__(self, port, **kw):
        super().__init__(port, **kw)
        self.seen = set()

    def call(self, method, path, body=None, **kw):
        reply = super().call(method, path, body, **kw)
        template = template_of(method, path)
        if template is None:
            pointer = "#/components/schemas/Problem"
            assert not faults(pointer, reply.json), reply
            return reply
        self.seen.add((method, template, reply.status))
        validate(reply, method, template)
        if reply.status == 200 and body is not None and not isinstance(body, (bytes, str)):
            validate_request(body, method, template)
        return reply
