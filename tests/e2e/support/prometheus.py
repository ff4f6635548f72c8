"""The page of metrics, as Prometheus reads it."""
import re


def parse(text):
    """{(name, ((label, value), …)): number} of a Prometheus page."""
    out = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line).groups()
            out[name, tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))] = float(value)
    return out


def metrics(client):
    r = client.get("/metrics")
    assert r.status == 200 and r.header("Content-Type").startswith("text/plain; version=0.0.4"), r
    return r.raw.decode()
