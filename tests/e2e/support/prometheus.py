"""The page of metrics, as Prometheus reads it: of several nodes each page, added up."""
import re

from nodes import each_node


def parse(text):
    """{(name, ((label, value), …)): number} of a Prometheus page."""
    out = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line).groups()
            out[name, tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))] = float(value)
    return out


def added(pages):
    """One page with the sums of all; the comments are those of the first."""
    lines, sums = {}, {}
    for page in pages:
        for line in page.splitlines():
            name = line if line.startswith("#") else line.rsplit(" ", 1)[0]
            lines.setdefault(name)
            if name != line:
                sums[name] = sums.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
    number = lambda value: f"{value:.0f}" if value.is_integer() else repr(value)
    return "".join(f"{name} {number(sums[name])}\n" if name in sums else f"{name}\n" for name in lines)


def metrics(client):
    pages = []
    for node in each_node(client):
        r = node.get("/metrics")
        assert r.status == 200 and r.header("Content-Type").startswith("text/plain; version=0.0.4"), r
        pages.append(r.raw.decode())
    return pages[0] if len(pages) == 1 else added(pages)
