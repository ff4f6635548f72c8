"""Approvals that are decided twice: approve and reject arrive at the same moment for each; one of
them is the decision and the other a conflict, and the retries of both are answered alike."""
import statistics

from harness import BenchError, list_all, pawl_server, prepare, request, wait_ready
from results import row

ASKS = {"id": "asks", "steps": [{"name": "ok", "type": "approval", "prompt": "Go on?"}]}
TENANT = {"X-Tenant-ID": "t0"}


def decide(decision):
    return request(f"/api/v1/approvals/{{v}}/{decision}", "{}", tenant="t0", name=decision,
                   headers=["X-Actor: ann"])


def measure(bench, folder):
    count = bench.sizes.approvals
    with pawl_server(bench, folder) as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client, [ASKS], 1)
        bench.load_counted(pawl, "asking", count,
                           request("/api/v1/workflows/asks/runs", "{}", tenant="t0"),
                           codes={"200": count})
        jobs = list_all(client, "/api/v1/approvals?status=pending", TENANT, "job_id")
        client.close()
        if len(jobs) != count:
            raise BenchError(f"{len(jobs)} approvals are pending instead of {count}")
        values = folder / "jobs"
        values.write_text("".join(f"{job}\n" * 2 for job in jobs))

        def both(what):
            return bench.load_counted(pawl, what, 2 * count, decide("approve"), decide("reject"),
                                      codes={"200": count, "409": count},
                                      options=["--values", values])

        first, again = both("approve and reject at once"), both("both again")
        for decision in ("approve", "reject"):
            if first["kinds"][decision]["codes"] != again["kinds"][decision]["codes"]:
                raise BenchError(f"a retry of {decision} was not answered as at first: {first} {again}")
        return {"first": first, "again": again}


def summarize(rounds):
    rows = []
    for name, what in (("first", "approve and reject at once"), ("again", "  their retries")):
        def median(figure):
            return statistics.median(r[name][figure] for r in rounds)

        rows += [row(f"{what}, 64 connections", median("rate"), "/s"),
                 row("  their p99", median("p99_us"), "us")]
    return rows
