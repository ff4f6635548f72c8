"""How many starts and replays a server answers, and what one start costs, against a bare HTTP
answer and a bare SQLite commit."""
import json
import statistics

from harness import (CONNECTIONS, PARK, PARK_PATH, START_BODY, BenchError, ask, bare_server, load,
                 pawl_server, row, run_tool, wait_ready)


def prepare(client):
    """Defines the workflow for each connection's tenant, and proves that a start is a start."""
    for tenant in range(CONNECTIONS):
        ask(client, "PUT", "/api/v1/workflows/park", {"X-Tenant-ID": f"t{tenant}"},
            json.dumps(PARK))
    probe = {"X-Tenant-ID": "t0", "Idempotency-Key": "probe"}
    first, again = (json.loads(ask(client, "POST", PARK_PATH, probe, START_BODY))
                    for _ in range(2))
    if (first.get("created"), again.get("created")) != (True, False) \
            or first.get("run_id") != again.get("run_id"):
        raise BenchError(f"a start and its replay answered {first} and {again}")


def measure(args, folder):
    """All figures once, on a fresh server and a fresh store, so that rounds compare."""
    tools, seconds = args.tools, args.seconds
    figures = {}
    with bare_server(args, folder) as bare, pawl_server(args, folder) as pawl:
        client = pawl.client()
        wait_ready(client)
        figures["ready_ms"] = pawl.ready_ms
        figures["idle_rss_mib"] = pawl.rss_mib()
        prepare(client)
        client.close()

        # The machine's mood changes by the second: each yardstick is taken right before and right
        # after what it measures, in windows of half the length.
        def commit_p50_us():
            return run_tool([tools / "sqlite_commit", folder / "commit.db", seconds / 2],
                            seconds)["p50_us"]

        def bare_rate():
            return load(tools, bare, "bare", seconds / 2)["rate"]

        commits = [commit_p50_us()]
        one = load(tools, pawl, "one-connection starts", seconds, connections=1)
        commits.append(commit_p50_us())
        figures["commit_p50_us"] = statistics.mean(commits)
        figures["one_start_p50_us"] = one["p50_us"]
        figures["one_start_ratio"] = one["p50_us"] / figures["commit_p50_us"]

        rates = [bare_rate()]
        for what, key in ("starts", "{u}"), ("replays", "dup"):
            result = load(tools, pawl, what, seconds, key=key)
            rates.append(bare_rate())
            figures[f"{what}_per_s"] = result["rate"]
            figures[f"{what}_p99_us"] = result["p99_us"]
            figures[f"{what}_ratio"] = result["rate"] / statistics.mean(rates[-2:])
        figures["bare_per_s"] = statistics.mean(rates)
    return figures


def summarize(rounds):
    """The table's rows. A ratio is the median of the rounds' own ratios, so it may differ a little
    from the quotient of the two medians shown."""
    def median(name):
        return statistics.median(r[name] for r in rounds)

    starts, replays = median("starts_ratio"), median("replays_ratio")
    single = median("one_start_ratio")
    rss, ready = median("idle_rss_mib"), median("ready_ms")
    return [
        row(f"bare HTTP, {CONNECTIONS} connections", median("bare_per_s"), "/s"),
        row(f"durable starts, {CONNECTIONS} connections", median("starts_per_s"), "/s",
            starts, ">= 0.2 x bare", starts >= 0.2),
        row(f"replays, {CONNECTIONS} connections", median("replays_per_s"), "/s",
            replays, ">= 0.4 x bare", replays >= 0.4),
        row("SQLite FULL commit, p50", median("commit_p50_us"), "us"),
        row("start, 1 connection, p50", median("one_start_p50_us"), "us",
            single, "<= 2 x commit", single <= 2),
        row("idle RSS", rss, "MiB", None, "< 15 MiB", rss < 15),
        row("exec to listening", ready, "ms", None, "< 100 ms", ready < 100),
    ]
