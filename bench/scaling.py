#!/usr/bin/env python3
"""Writes the tables of docs/scaling.md from what was measured: pawl on PostgreSQL, what a large cluster needs, with the formula of
every number, and peers on PostgreSQL.

    python3 bench/run.py --pawl build/pawl --tools build/bench --only cluster --out cluster.jsonl
    python3 bench/run.py --pawl build/pawl --tools build/bench --only peers_postgres --peers FOLDER --out peers.jsonl
    python3 bench/scaling.py cluster.jsonl peers.jsonl [--into docs/scaling.md]

Prints Markdown, or puts it between the markers of the page.
"""
import argparse
import math
import pathlib
import sys

from report import ReportError, heading, read
from results import ratio_of, value_of

DAY_S = 86_400
RUNS_A_DAY, TENANTS, SHARDS = 1_000_000_000, 1_000_000, 256
PEAK, BUSY = 3, 0.5        # the busiest minute over the mean; how busy a CPU may be then
REQUESTS = 4               # of a run with three steps: a start, and three results that also claim the next job
POSTGRES_CORES, KEPT_DAYS, LOG_DAYS, BUS_DAYS, COPIES = 32, 7, 1, 1, 2
BUS_COPIES = 3
# Rented, in dollars: assumptions, to be replaced by your own.
CORE_MONTH, DISK_GB_MONTH, NETWORK_GB = 30, 0.10, 0.01


def figures_of(figures):
    """{first line of a group: {line: value}}."""
    found, group = {}, None
    for one in figures:
        if not one["figure"].startswith(" "):
            group = found.setdefault(one["figure"], {"": one["value"]})
        else:
            group[one["figure"].strip()] = one["value"]
    return found


def group_of(found, prefix):
    return next(group for name, group in found.items() if name.startswith(prefix))


def measured_table(figures):
    out = ["| measured on one machine | | of pgbench |", "|---|---|---|"]
    for one in figures:
        name = one["figure"] if not one["figure"].startswith(" ") else f"… {one['figure'].strip()}"
        out.append(f"| {name} | {value_of(one)} | {ratio_of(one)} |")
    return out


def rounded(value):
    """To three digits, with separators."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.{min(digits, 2)}f}"


def derived(found):
    """(what, how much, from what) of a billion runs a day."""
    run, forward = group_of(found, "W3 "), group_of(found, "W1 start through")
    one_shard = group_of(found, "W1 start, one node, 1 shard")
    rate, peak = RUNS_A_DAY / DAY_S, PEAK * RUNS_A_DAY / DAY_S
    loop, cpu, db_cpu = (run[name] / 1e6 for name in ("of that its HTTP thread", "CPU time of the node", "CPU time of PostgreSQL"))
    kept, log = run["bytes kept in PostgreSQL"], run["bytes of its log"]
    nodes = math.ceil(peak * loop / BUSY) + 1
    node_cores = math.ceil(peak * cpu / BUSY)
    clusters = math.ceil(peak * db_cpu / BUSY / POSTGRES_CORES)
    between = peak * REQUESTS * (1 - 1 / nodes) * forward["bytes between nodes of a forwarded start"]
    disk_gb = RUNS_A_DAY * (kept * KEPT_DAYS + log * LOG_DAYS) / 1e9 * COPIES
    bus_gb = RUNS_A_DAY * run["bytes on the bus"] * BUS_DAYS / 1e9 * BUS_COPIES
    cores = node_cores + clusters * POSTGRES_CORES * COPIES
    network_gb = RUNS_A_DAY * (log * (COPIES - 1) + REQUESTS * (1 - 1 / nodes) * forward["bytes between nodes of a forwarded start"]
                               + run["bytes on the bus"] * BUS_COPIES) / 1e9
    cost = cores * CORE_MONTH + (disk_gb + bus_gb) * DISK_GB_MONTH + network_gb * 30 * NETWORK_GB
    return [
        ("runs a second", f"{rounded(rate)} on average, {rounded(peak)} at the peak", f"10⁹ / 86,400 s; × {PEAK}"),
        ("shards", f"{SHARDS}", f"the most that a store has; {rounded(TENANTS / SHARDS)} tenants and {rounded(peak / SHARDS)} runs/s each at the peak; "
         f"one shard alone took {rounded(one_shard[''])} starts/s here"),
        ("nodes", f"{nodes}", f"peak × {rounded(loop * 1e6)} µs of the HTTP thread / {BUSY}, and one to spare: a node has one such thread"),
        ("cores of all nodes", f"{node_cores}", f"peak × {rounded(cpu * 1e6)} µs / {BUSY}"),
        ("PostgreSQL clusters", f"{clusters} of {POSTGRES_CORES} cores", f"peak × {rounded(db_cpu * 1e6)} µs / {BUSY} / {POSTGRES_CORES}; "
         f"{rounded(SHARDS / clusters)} shards each"),
        ("commits to disk", f"{rounded(peak * log / clusters / 1e6)} MB/s per cluster", f"peak × {rounded(log)} B of log / {clusters}"),
        ("connections", f"{math.ceil(5 * SHARDS / clusters) + 4 * nodes} per cluster", f"5 × {SHARDS} / {clusters} + 4 × {nodes}"),
        ("storage per day", f"{rounded(RUNS_A_DAY * kept / 1e12)} TB of tables, {rounded(RUNS_A_DAY * log / 1e12)} TB of log",
         f"10⁹ × {rounded(kept)} B, 10⁹ × {rounded(log)} B"),
        ("storage in all", f"{rounded(disk_gb / 1000)} TB", f"runs kept {KEPT_DAYS} days, the log {LOG_DAYS}, × {COPIES} for the standby"),
        ("NATS", f"{rounded(peak * run['messages on the bus'])} messages/s, {rounded(bus_gb / 1000)} TB",
         f"peak × {rounded(run['messages on the bus'])}; 10⁹ × {rounded(run['bytes on the bus'])} B × {BUS_DAYS} day × {BUS_COPIES} copies"),
        ("network between nodes", f"{rounded(between * 8 / 1e9)} Gbit/s", f"peak × {REQUESTS} requests × (1 − 1/{nodes}) × "
         f"{rounded(forward['bytes between nodes of a forwarded start'])} B"),
        ("network to the standbys", f"{rounded(peak * log * 8 / 1e9)} Gbit/s", f"peak × {rounded(log)} B"),
        ("cost per month", f"${rounded(cost)}", f"{cores} cores × ${CORE_MONTH} + {rounded(disk_gb + bus_gb)} GB × ${DISK_GB_MONTH:.2f} + "
         f"{rounded(network_gb)} GB a day × 30 × ${NETWORK_GB}; {rounded(cost / (RUNS_A_DAY * 30) * 1e6)} dollars per million runs"),
    ]


def cluster_section(run, figures):
    out = [heading(run, False), "", *measured_table(figures), "", "A billion runs a day for a million tenants, each run with three steps "
           "and events on NATS, from the figures above:", "", "| needed | | from |", "|---|---|---|"]
    return out + [f"| {what} | {much} | {source} |" for what, much, source in derived(figures_of(figures))]


def peers_section(run, figures):
    out = [heading(run, False), "", "| starts at 64 connections | | pawl is |", "|---|---|---|"]
    ours = next(one for one in figures if "pawl" in one["figure"])
    ratios = [ratio_of(one) for one in figures if one["ratio"] is not None]
    out.append(f"| pawl on PostgreSQL, one node, 16 shards | {value_of(ours)} | |")
    theirs = [one for one in figures if one["ratio"] is None]
    return out + [f"| {one['figure'].split(': ')[1]} | {value_of(one)} | {ratio} × |" for one, ratio in zip(theirs, ratios)]


SECTIONS = {"cluster": cluster_section, "peers_postgres": peers_section}


def sections(path):
    """(part, text) of those parts of a file that belong on the page."""
    run, _, figures = read(path)
    parts = [part for part in SECTIONS if any(one["part"] == part for one in figures)]
    if not parts:
        raise ReportError(f"{path} has none of the parts {', '.join(SECTIONS)}")
    return [(part, "\n".join(SECTIONS[part](run, [one for one in figures if one["part"] == part]))) for part in parts]


def put_into(path, part, text):
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    whole = path.read_text()
    if whole.count(begin) != 1 or whole.count(end) != 1:
        raise ReportError(f"{path} has no {begin} and {end}")
    path.write_text(f"{whole.split(begin)[0]}{begin}\n{text}\n{end}{whole.split(end)[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, nargs="+")
    parser.add_argument("--into", type=pathlib.Path, help="a page with the markers")
    args = parser.parse_args()
    try:
        for part, text in [section for path in args.results for section in sections(path)]:
            if args.into:
                put_into(args.into, part, text)
            else:
                print(text)
    except (ReportError, OSError) as failure:
        print(f"scaling: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
