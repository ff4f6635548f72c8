"""Ten thousand tenants that are all at their limits: how fast starts are rejected, that each limit
is exact, and whether starts of other tenants notice."""
import json
import statistics

from harness import (PARK, PARK_PATH, START_BODY, BenchError, ask, pawl_server, prepare, request, start,
                     wait_ready)
from results import row

SAMPLED = 20  # tenants whose counters are looked at


def fill(bench, server, count):
    tenant = f"full{{n{count}}}"
    all_ok = {"200": count}
    for what, one in (
            ("tenants", request(f"/api/v1/tenants/{tenant}", '{"max_concurrent_runs":1}',
                                tenant=None, method="PUT")),
            ("their workflows", request("/api/v1/workflows/park", json.dumps(PARK), tenant=tenant,
                                        method="PUT")),
            ("their runs", request(PARK_PATH, tenant=tenant, key="{u}"))):
        bench.load_counted(server, f"filling {count:,} {what}", count, one, codes=all_ok)


def check_exact(server, count):
    client = server.client()
    digits = len(str(count - 1))
    for number in range(0, count, max(1, count // SAMPLED)):
        shown = json.loads(ask(client, "GET", f"/api/v1/tenants/full{number:0{digits}}", {}))
        if shown["active_runs"] != 1:
            raise BenchError(f"a tenant with a limit of 1 has {shown['active_runs']} active runs")
    client.close()


def measure(bench, folder):
    count = bench.sizes.tenants
    figures = {"count": count}
    with pawl_server(bench, folder) as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client)
        client.close()
        before = bench.load(pawl, "W1 start, no tenant at its limit", start())
        fill(bench, pawl, count)
        figures["rejected"] = bench.load(
            pawl, f"start, {count:,} tenants at their limits",
            request(PARK_PATH, START_BODY, tenant=f"full{{n{count}}}", key="{u}"), codes={"429"})
        check_exact(pawl, count)
        figures["others"] = bench.load(pawl, f"W1 start beside {count:,} full tenants", start())
        figures["others_share"] = figures["others"]["rate"] / before["rate"]
        figures["rss_mib"] = pawl.rss_mib()
    return figures


def summarize(rounds):
    def median(pick):
        return statistics.median(pick(r) for r in rounds)

    count = rounds[0]["count"]
    return [row(f"rejected starts, {count:,} tenants at their limits",
                median(lambda r: r["rejected"]["rate"]), "/s"),
            row("  their p99", median(lambda r: r["rejected"]["p99_us"]), "us"),
            row("starts of other tenants beside them", median(lambda r: r["others"]["rate"]), "/s",
                median(lambda r: r["others_share"]), "x none"),
            row("  RSS then", median(lambda r: r["rss_mib"]), "MiB")]
