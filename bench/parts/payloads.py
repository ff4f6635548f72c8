"""W1 with inputs of 2 KB and 64 KB: what realistic payloads cost."""
import json
import statistics

from harness import PARK_PATH, bare_server, on, pawl_server, prepare, request, start, wait_ready
from results import row

SIZES = {"2 KB": 2 << 10, "64 KB": 64 << 10}
CONNECTIONS = {"2 KB": 64, "64 KB": 16}


def body(size):
    """An order whose JSON has exactly so many bytes: objects, numbers, texts, and a filler."""
    order = {"orderId": "order_789", "customer": {"id": 12345, "vip": False, "mail": "ann@example.com"},
             "lines": [], "note": ""}
    while len(json.dumps({"input": order})) < size - 150:
        number = len(order["lines"])
        order["lines"].append({"sku": f"A-{1000 + number}", "count": number % 7 + 1,
                               "price": round(19.95 + number * 0.35, 2), "tags": ["new", None],
                               "text": "caf\u00e9 \"crème\""})
    order["note"] = "x" * (size - len(json.dumps({"input": order})))
    return json.dumps({"input": order})


def measure(bench, folder):
    figures = {}
    with bare_server(bench, folder) as bare, pawl_server(bench, folder) as pawl:
        client = pawl.client()
        wait_ready(client)
        prepare(client)
        client.close()

        def small(connections):
            return bench.load(pawl, f"W1 start, small input, {on(connections)}", start(),
                              connections=connections, seconds=bench.seconds / 2)

        for name, size in SIZES.items():
            connections = CONNECTIONS[name]
            before = small(connections)
            figures[name] = bench.load(pawl, f"W1 start, {name} input, {on(connections)}",
                                       start(body=body(size)), connections=connections)
            after = small(connections)
            figures[f"{name} of small"] = {
                figure: figures[name][figure] / statistics.mean((before[figure], after[figure]))
                for figure in ("rate", "server_cpu_us")}
            figures[f"{name} bare"] = bench.load(
                bare, f"bare, {name} body, {on(connections)}",
                request(PARK_PATH, body(size)), connections=connections, seconds=bench.seconds / 2)
    return figures


def summarize(rounds):
    def median(pick):
        return statistics.median(pick(r) for r in rounds)

    rows = []
    for name in SIZES:
        share = median(lambda r: r[f"{name} of small"]["rate"])
        target = (">= 0.7 x small", share >= 0.7) if name == "2 KB" else ("x small", None)
        rows += [row(f"W1 start, {name} input, {on(CONNECTIONS[name])}",
                     median(lambda r: r[name]["rate"]), "/s", share, *target),
                 row("  its p99", median(lambda r: r[name]["p99_us"]), "us"),
                 row("  its CPU time of the server", median(lambda r: r[name]["server_cpu_us"]), "us",
                     median(lambda r: r[f"{name} of small"]["server_cpu_us"]), "x small", steady=True),
                 row(f"bare HTTP, {name} body", median(lambda r: r[f"{name} bare"]["rate"]), "/s",
                     median(lambda r: r[name]["rate"] / r[f"{name} bare"]["rate"]), "start x bare")]
    return rows
