"""W1, W2 and W5: how many starts and replays a server answers, what one start costs, how latency is
at a constant rate, and what an idle server takes; against a bare HTTP answer and a bare commit."""
import statistics

from harness import (bare_server, check_start, on, pawl_server, prepare, request, start,
                     START_BODY)
from results import row

START_CONNECTIONS = (1, 16, 64)
REPLAY_CONNECTIONS = 16
RATE_CONNECTIONS = 256  # enough that a request seldom waits for one
YARDSTICKS = ("rate", "p50_us", "server_cpu_us")
RATE_SHARES = (0.5, 0.8)  # of what the closed loop reached


def measure(bench, folder):
    """All figures once, on a fresh server and a fresh store, so that rounds compare."""
    with bare_server(bench, folder) as bare, pawl_server(bench, folder) as pawl:
        figures = {"idle": {"ready_ms": pawl.wait_ready(), "rss_mib": pawl.rss_mib()}}
        bench.results.measured("W5 idle", figures["idle"])
        client = pawl.client()
        prepare(client)
        check_start(client)
        client.close()
        measure_starts(bench, folder, pawl, bare, figures)
        for share in RATE_SHARES:
            rate = max(1, round(figures["start_64"]["rate"] * share))
            figures[f"open_{share}"] = bench.load(
                pawl, f"W1 start at {share:.0%} of that rate", start(tenant="t{c64}"),
                connections=RATE_CONNECTIONS, rate=rate)
    return figures


def measure_starts(bench, folder, pawl, bare, figures):
    """The machine's mood changes by the second: each yardstick is taken right before and right
    after what it measures, in windows of half the length."""
    half = bench.seconds / 2

    def commit():
        return bench.tool("SQLite FULL commit", "sqlite_commit", folder / "commit.db", half)

    def bare_answer(connections):
        return bench.load(bare, f"bare, {on(connections)}", request("/", START_BODY),
                          connections=connections, seconds=half)

    def between(yardstick, name, what, key, connections):
        before = yardstick()
        figures[name] = bench.load(pawl, f"{what}, {on(connections)}", start(key),
                                   connections=connections)
        after = yardstick()
        figures[f"{name}_yardstick"] = {figure: statistics.mean((before[figure], after[figure]))
                                        for figure in YARDSTICKS if figure in before}

    for connections in START_CONNECTIONS:
        between(commit if connections == 1 else lambda: bare_answer(connections),
                f"start_{connections}", "W1 start", "{u}", connections)
    between(lambda: bare_answer(REPLAY_CONNECTIONS), "replay", "W2 replay", "dup",
            REPLAY_CONNECTIONS)


def summarize(rounds):
    """The table's rows. A ratio is the median of the rounds' own ratios, so it may differ a little
    from the quotient of the two medians shown."""
    def median(name, figure):
        return statistics.median(r[name][figure] for r in rounds)

    def share(name, figure="rate"):
        return statistics.median(r[name][figure] / r[f"{name}_yardstick"][figure] for r in rounds)

    def cpu_row(name):
        return row("  its CPU time of the server", median(name, "server_cpu_us"), "us",
                   share(name, "server_cpu_us"), "x bare", steady=True)

    rows = []
    for connections in START_CONNECTIONS[1:]:
        name = f"start_{connections}"
        ratio, top = share(name), connections == 64
        rows.append(row(f"W1 start, {on(connections)}", median(name, "rate"), "/s", ratio,
                        ">= 0.40 x bare" if top else "x bare", ratio >= 0.4 if top else None))
        for figure, most in (("p50_us", None), ("p99_us", 5000), ("p999_us", 15000)):
            us = median(name, figure)
            limit = most if top else None
            rows.append(row(f"  its {percentile(figure)}", us, "us", None,
                            limit and f"<= {limit / 1000:g} ms", limit and us <= limit))
        rows.append(cpu_row(name))
    single, replay = share("start_1", "p50_us"), share("replay")
    rows += [row("W1 start, 1 connection, p50", median("start_1", "p50_us"), "us", single,
                 "<= 1.5 x commit", single <= 1.5),
             row(f"W2 replay, {on(REPLAY_CONNECTIONS)}", median("replay", "rate"), "/s",
                 replay, ">= 0.7 x bare", replay >= 0.7), cpu_row("replay")]
    for part in RATE_SHARES:
        for figure in ("p50_us", "p99_us", "p999_us"):
            rows.append(row(f"W1 at {part:.0%} of that rate, open loop, {percentile(figure)}",
                            median(f"open_{part}", figure), "us"))
    rss, ready = median("idle", "rss_mib"), median("idle", "ready_ms")
    return rows + [row("W5 idle RSS", rss, "MiB", None, "<= 12 MiB", rss <= 12),
                   row("W5 exec to ready", ready, "ms", None, "<= 50 ms", ready <= 50)]


def percentile(figure):
    return figure.removesuffix("_us").replace("p999", "p99.9")
