#!/usr/bin/env python3
"""Makes tables and plots of the results of a benchmark.

    python3 bench/report.py build/bench/results.jsonl [--into docs/performance.md] [--svg docs/performance] [--steady]

Prints Markdown, or puts it between the markers of a page. --svg writes the plots to a folder. --steady leaves out rates
and latencies: for results of a machine that was not alone, on which CPU time, instructions and bytes still mean something.
"""
import argparse
import json
import os
import pathlib
import sys

import svg
from results import ratio_of, value_of

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
PERCENTILES = {"p50_us": "50", "p90_us": "90", "p95_us": "95", "p99_us": "99", "p999_us": "99.9", "max_us": "max"}


TITLES = {"starts": "Answers of pawl and of bare servers", "latency": "Latency of a start by percentile",
          "growth": "A start as the store grows, compared with an empty store"}


class ReportError(Exception):
    pass


def read(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = {kind: [line for line in lines if line["kind"] == kind] for kind in ("run", "measure", "figure")}
    if len(kinds["run"]) != 1 or not kinds["figure"]:
        raise ReportError(f"{path} has no finished run; see what bench/run.py said")
    return kinds["run"][0], kinds["measure"], kinds["figure"]


# --- tables ---

def heading(run, steady):
    text = (f"Commit {run['commit']}, {run['date']}: {run['cores']} cores ({run['cpu']}), {run['memory_gib']} GiB, "
            f"{run['system']}, Linux {run['kernel']}; load average {run['load_average']:.1f} at the start. Client and server "
            f"share the cores. Median of {run['rounds']} round{'s' * (run['rounds'] > 1)}, windows of {run['seconds']:g} s. "
            f"`{run['command']}`")
    if steady:
        text += ("\n\nThe machine was shared with other work: only figures are shown that hardly depend on that, which are CPU "
                 "time, instructions and bytes, but no rates and latencies.")
    return text


def table(figures, steady):
    out, part, named = [], None, ""
    for one in figures:
        inner = one["figure"].startswith(" ")
        named = named if inner else one["figure"]
        if steady and not one["steady"]:
            continue
        if one["part"] != part:
            part = one["part"]
            out += ["", f"**{part}** (`make bench ONLY={part}`)", "", "| figure | measured | ratio | target | |",
                    "|---|---|---|---|---|"]
        name = f"{named}: {one['figure'].strip().removeprefix('its ').removeprefix('their ')}" if inner else named
        result = {None: "", True: "met", False: "missed"}[one["met"]]
        out.append(f"| {name} | {value_of(one)} | {ratio_of(one)} | {one['target'] or ''} | {result} |")
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


def plot_starts(measures, steady):
    names = ["bare libmicrohttpd, 64 connections", "bare pawl's HTTP layer, 64 connections",
             "W2 replay, 16 connections", "W1 start, 64 connections", "W1 start, 16 connections",
             "W1 start, 1 connection", "W1 start, 2 KB input, 64 connections", "W1 start, 64 KB input, 16 connections",
             "W3 three steps, 16 connections"]
    figure = "server_cpu_us" if steady else "rate"
    values = [(name, named(measures, name, figure)) for name in names]
    values = [(name, value) for name, value in values if value is not None]
    if not values:
        return None
    return svg.bars("CPU time of the server per answer" if steady else "Answers per second", "us" if steady else "/s", values)


def plot_latency(measures):
    series = {}
    for what in ("W1 start, 64 connections", "W1 start at 80% of that rate", "W1 start at 50% of that rate"):
        points = [named(measures, what, figure) for figure in PERCENTILES]
        if all(points):
            series[what] = [(at, us / 1000) for at, us in enumerate(points)]
    if not series:
        return None
    return svg.lines("Latency of a start", "percentile; at a rate: from when the request was due", "ms", series,
                     list(PERCENTILES.values()), logarithmic=True)


def plot_growth(measures, title, lines):
    """lines: {name: figure}; each as a multiple of what it was at zero."""
    prefix, series = "start at ", {}
    for name, figure in lines.items():
        points = [(int(one["what"].removeprefix(prefix).split()[0].replace(",", "")), one[figure])
                  for one in measures if one["part"] == "growth" and one["what"].startswith(prefix)]
        if len(points) > 1 and points[0][1]:
            series[name] = [(size, value / points[0][1]) for size, value in points]
    return svg.lines(title, "finished runs in the store", "x at zero", series) if series else None


def plots(measures, steady):
    """{name: SVG}"""
    drawn = {"starts": plot_starts(measures, steady),
             "latency": None if steady else plot_latency(measures),
             "growth": plot_growth(measures, "A start as the store grows", {"CPU time of the server": "server_cpu_us"} if steady
                                   else {"starts per second": "rate", "p99": "p99_us", "CPU time of the server": "server_cpu_us"})}
    return {name: text for name, text in drawn.items() if text}


def write_plots(folder, drawn, page):
    """The page's lines that show them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawn.items():
        (folder / f"{name}.svg").write_text(drawing)
    shown = os.path.relpath(folder, page.parent) if page else folder.name
    return "".join(f"\n\n![{TITLES[name]}]({shown}/{name}.svg)" for name in drawn)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, help="a page with the markers")
    parser.add_argument("--svg", type=pathlib.Path, help="a folder for the plots")
    parser.add_argument("--steady", action="store_true", help="leave out what depends on what else the machine does")
    args = parser.parse_args()
    try:
        run, measures, figures = read(args.results)
        text = f"{heading(run, args.steady)}\n{table(figures, args.steady)}"
        if args.svg:
            text += write_plots(args.svg, plots(measures, args.steady), args.into)
        if args.into:
            put_into(args.into, text)
        else:
            print(text)
    except (ReportError, OSError, ValueError) as failure:
        print(f"report: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
