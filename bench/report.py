#!/usr/bin/env python3
"""Makes tables and plots of the results of a benchmark.

    python3 bench/report.py build/bench/results.jsonl [--into docs/performance.md] [--svg docs/performance] [--ratios]

Prints Markdown, or puts it between the markers of a page. --svg writes the plots to a folder. --ratios leaves out what
depends on the machine's mood: for results of a machine that was not alone.
"""
import argparse
import json
import pathlib
import sys

import svg
from results import value_of

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
PERCENTILES = {"p50_us": "50", "p90_us": "90", "p95_us": "95", "p99_us": "99", "p999_us": "99.9", "max_us": "max"}


class ReportError(Exception):
    pass


def read(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = {kind: [line for line in lines if line["kind"] == kind] for kind in ("run", "measure", "figure")}
    if len(kinds["run"]) != 1 or not kinds["figure"]:
        raise ReportError(f"{path} has no finished run; see what bench/run.py said")
    return kinds["run"][0], kinds["measure"], kinds["figure"]


# --- tables ---

def heading(run, ratios):
    alone = f"load average {run['load_average']:.1f} at the start"
    text = (f"Commit {run['commit']}, {run['date']}: {run['cores']} cores ({run['cpu']}), {run['memory_gib']} GiB, "
            f"{run['system']}, Linux {run['kernel']}; {alone}. Client and server share the cores. Median of {run['rounds']} "
            f"round{'s' * (run['rounds'] > 1)}, windows of {run['seconds']:g} s. `{run['command']}`")
    if ratios:
        text += "\n\nThe machine was shared with other work, so only ratios are shown."
    return text


def table(figures, ratios):
    out, part = [], None
    for one in figures:
        if ratios and one["ratio"] is None:
            continue
        if one["part"] != part:
            part = one["part"]
            out += ["", f"**{part}** (`make bench ONLY={part}`)", "",
                    "| figure | ratio | target | |" if ratios else "| figure | measured | ratio | target | |",
                    "|---|---|---|---|" if ratios else "|---|---|---|---|---|"]
        name = one["figure"].strip() if one["figure"][0] != " " else f"… {one['figure'].strip()}"
        ratio = "" if one["ratio"] is None else f"{one['ratio']:.2f}"
        result = {None: "", True: "met", False: "missed"}[one["met"]]
        cells = [name, *([] if ratios else [value_of(one)]), ratio, one["target"] or "", result]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def put_into(page, text):
    old = page.read_text()
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise ReportError(f"{page} needs one line {BEGIN} and, below it, one line {END}")
    before, after = old[:old.index(BEGIN)], old[old.index(END):]
    page.write_text(f"{before}{BEGIN}\n{text}\n{after}")


# --- plots ---

def named(measures, what, figure):
    """The middle of the rounds' values, or None."""
    found = sorted(one[figure] for one in measures if one["what"] == what and figure in one)
    return found[len(found) // 2] if found else None


def plot_starts(measures, ratios):
    names = ["bare libmicrohttpd, 64 connections", "bare pawl's HTTP layer, 64 connections",
             "W2 replay, 16 connections", "W1 start, 64 connections", "W1 start, 16 connections",
             "W1 start, 1 connection", "W1 start, 2 KB input, 64 connections", "W1 start, 64 KB input, 16 connections",
             "W3 three steps, 16 connections"]
    values = [(name, named(measures, name, "rate")) for name in names]
    values = [(name, value) for name, value in values if value]
    bare = named(measures, names[0], "rate")
    if not values or ratios and not bare:
        return None
    if ratios:
        return svg.bars("Answers per second, as a share of a bare HTTP answer", "x bare",
                        [(name, value / bare) for name, value in values])
    return svg.bars("Answers per second", "/s", values)


def plot_latency(measures, ratios):
    commit = named(measures, "SQLite FULL commit", "p50_us")
    unit = commit if ratios else 1000
    series = {}
    for what in ("W1 start, 64 connections", "W1 start at 80% of that rate", "W1 start at 50% of that rate"):
        points = [named(measures, what, figure) for figure in PERCENTILES]
        if all(points) and unit:
            series[what] = [(at, us / unit) for at, us in enumerate(points)]
    if not series:
        return None
    return svg.lines("Latency of a start", "percentile; at a rate: from when the request was due",
                     "x the median commit" if ratios else "ms", series, list(PERCENTILES.values()), logarithmic=True)


def growth_points(measures, figure):
    prefix, found = "start at ", []
    for one in measures:
        if one["part"] == "growth" and one["what"].startswith(prefix):
            found.append((int(one["what"].removeprefix(prefix).split()[0].replace(",", "")), one[figure]))
    return found


def plot_growth(measures, figure, title, unit, ratios, scale=1.0):
    points = growth_points(measures, figure)
    if len(points) < 2:
        return None
    by = points[0][1] if ratios else scale
    return svg.lines(title, "finished runs in the store", "x at zero" if ratios else unit,
                     {figure.removesuffix("_us"): [(size, value / by) for size, value in points]})


def plots(measures, ratios):
    drawn = {"starts": plot_starts(measures, ratios), "latency": plot_latency(measures, ratios),
             "growth": plot_growth(measures, "rate", "Starts as the store grows", "/s", ratios),
             "growth-p99": plot_growth(measures, "p99_us", "p99 of a start as the store grows", "ms", ratios, 1000)}
    return {name: text for name, text in drawn.items() if text}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, help="a page with the markers")
    parser.add_argument("--svg", type=pathlib.Path, help="a folder for the plots")
    parser.add_argument("--ratios", action="store_true", help="leave out absolute figures")
    args = parser.parse_args()
    try:
        run, measures, figures = read(args.results)
        text = f"{heading(run, args.ratios)}\n{table(figures, args.ratios)}"
        if args.into:
            put_into(args.into, text)
        else:
            print(text)
        if args.svg:
            args.svg.mkdir(parents=True, exist_ok=True)
            for name, drawing in plots(measures, args.ratios).items():
                (args.svg / f"{name}.svg").write_text(drawing)
    except (ReportError, OSError, ValueError) as failure:
        print(f"report: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
