"""Whether an entity's signals cost the same however many it has had, and whether memory and file
stay bounded though every signal has a key of its own."""
import json
import statistics
import time

from harness import BenchError, ask, pawl_server, request, wait_ready, worker
from results import row

TENANT = {"X-Tenant-ID": "t"}
TYPE_PATH = "/api/v1/entity-types/counter"
ENTITY_PATH = "/api/v1/entities/counter/one"
# The defaults but for the batch, so that one worker keeps up.
TYPE = {"queue": "counter", "handler": "count", "max_batch": 1000}
SIGNAL = '{"name":"add","payload":{"points":12},"dedup_key":"{u}"}'
STEP = 1_000_000  # from there on
GROWTH_MAX = 1.5


def ages(sizes):
    """After how many signals is measured."""
    return [*(n for n in sizes.entity_ages if n <= sizes.signals),
            *range(sizes.entity_ages[-1] + STEP, sizes.signals + 1, STEP)]


def see(server):
    client = server.client()
    shown = json.loads(ask(client, "GET", ENTITY_PATH, TENANT))
    client.close()
    return shown


def handled(server):
    """The entity once nothing waits."""
    while True:
        shown = see(server)
        if shown["inbox"] == 0 and shown["call"] is None:
            return shown
        time.sleep(0.01)


def signal():
    return request(f"{ENTITY_PATH}/signals", SIGNAL, tenant="t")


def file_mib(folder):
    return sum(p.stat().st_size for p in folder.glob("pawl.db*")) / (1 << 20)


def fill(bench, server, age, begun):
    missing = age - see(server)["last_seq"] if begun else age
    if missing > 0:
        bench.load_counted(server, f"filling to {age:,} signals", missing, signal(),
                           codes={"200": missing})
    shown = handled(server)
    if shown["dedup"]["keys"] > shown["dedup"]["max_keys"]:
        raise BenchError(f"{shown['dedup']} after {age} signals")


def at_age(bench, folder, server, age, begun):
    """What the server has taken by then, and what one client's signals cost from there on."""
    fill(bench, server, age, begun)
    figures = {"rss_mib": server.rss_mib(), "file_mib": file_mib(folder)}
    before = server.cpu_us()
    one = bench.load(server, f"signals to one entity after {age:,}", signal(), connections=1, warm_s=0)
    handled(server)
    figures["p50_us"] = one["p50_us"]
    figures["cpu_us"] = (server.cpu_us() - before) / one["ops"]
    bench.results.measured(f"entity after {age:,} signals",
                           {name: round(value, 1) for name, value in figures.items()})
    return {f"signal_{name}_{age}": value for name, value in figures.items()}


def measure(bench, folder):
    figures = {"signal_ages": ages(bench.sizes)}
    with pawl_server(bench, folder) as server:
        client = server.client()
        wait_ready(client)
        ask(client, "PUT", TYPE_PATH, TENANT, json.dumps(TYPE))
        client.close()
        with worker(bench, server, "--tenant", "t", "--queue", "counter", "--connections", "2"):
            for age in figures["signal_ages"]:
                begun = age != figures["signal_ages"][0]
                figures |= at_age(bench, folder, server, age, begun)
    return figures


def summarize(rounds):
    def median(name, age):
        return statistics.median(r[f"signal_{name}_{age}"] for r in rounds)

    first, *later = rounds[0]["signal_ages"]

    def grown(name, age):
        return statistics.median(r[f"signal_{name}_{age}"] /
                                 r[f"signal_{name}_{first}"] for r in rounds)

    rows = [row(f"signal after {first:,} on one entity, p50", median("p50_us", first), "us"),
            row("  its CPU time of the server, with handling", median("cpu_us", first), "us")]
    for age in later:
        share = grown("p50_us", age)
        rows += [row(f"signal after {age:,}, p50", median("p50_us", age), "us", share,
                     f"<= {GROWTH_MAX} x first", share <= GROWTH_MAX),
                 row("  its CPU time", median("cpu_us", age), "us", grown("cpu_us", age))]
    for age in later:
        rows += [row(f"RSS after {age:,} keys", median("rss_mib", age), "MiB"),
                 row(f"file after {age:,} keys", median("file_mib", age), "MiB")]
    return rows
