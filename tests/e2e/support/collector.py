"""A collector of OpenTelemetry spans on loopback, which checks the form of everything that it is sent."""
import re

from receiver import Receiver

PATH = "/v1/traces"
STRINGS = {"traceId": "[0-9a-f]{32}", "spanId": "[0-9a-f]{16}", "startTimeUnixNano": "[0-9]{19}", "endTimeUnixNano": "[0-9]{19}"}
MEMBERS = {*STRINGS, "parentSpanId", "traceState", "flags", "name", "kind", "attributes", "status"}


def attributes(listed):
    """As a dictionary; a number is text in OTLP."""
    out = {}
    for a in listed:
        assert set(a) == {"key", "value"} and len(a["value"]) == 1 and a["key"] not in out, a
        [(kind, value)] = a["value"].items()
        assert kind in ("stringValue", "intValue") and isinstance(value, str), a
        out[a["key"]] = int(value) if kind == "intValue" else value
    return out


class Span:
    """One span, after its form was checked."""

    def __init__(self, raw):
        assert set(raw) <= MEMBERS and set(STRINGS) <= set(raw), raw
        assert all(re.fullmatch(form, raw[name]) for name, form in STRINGS.items()), raw
        self.raw = raw
        self.trace, self.id, self.parent = raw["traceId"], raw["spanId"], raw.get("parentSpanId")
        self.name, self.kind, self.state, self.flags = raw["name"], raw["kind"], raw.get("traceState"), raw["flags"]
        self.start, self.end = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])
        self.attributes = attributes(raw["attributes"])
        self.status = raw.get("status", {})
        assert self.start <= self.end and set(self.trace) != {"0"} and set(self.id) != {"0"}, raw

    def __repr__(self):
        return repr(self.raw)


class Collector(Receiver):
    def __init__(self, *answers):
        super().__init__()
        self.answers(PATH, *(answers or [(200, {})]))

    @property
    def flag(self):
        """The option of the server."""
        return ["--otlp", self.url("")]

    def requests(self):
        return self.at(PATH)

    def resources(self):
        return [attributes(r["resource"]["attributes"]) for sent in self.requests() for r in sent.json["resourceSpans"]]

    def spans(self, **wanted):
        """All that have come, in this order; those with these attributes only (a__b stands for a.b)."""
        found = [Span(s) for sent in self.requests() for r in sent.json["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
        return [s for s in found if all(s.attributes.get(k.replace("__", ".")) == v for k, v in wanted.items())]
