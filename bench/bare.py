#!/usr/bin/env python3
"""The same bare answer on pawl's HTTP layer and on libmicrohttpd, in turn in one run: rate and the server's CPU time per
request at 64 connections, and the ratio of the medians.

    python3 bench/bare.py --tools build/bench [--realtime]

On a machine that others use too, --realtime (as root) gives servers and client the real-time scheduler, so that the
others wait instead of disturbing the figures."""
import argparse
import os
import pathlib
import statistics
import tempfile

import harness

SERVERS = ("bare_http", "bare_own")
WARM_S = 1


def measure(tools, server, seconds):
    """(answers per second, microseconds of CPU per answer)"""
    options = ["--warm", WARM_S, "--seconds", seconds, *harness.request("/")]
    before = server.cpu_us()
    result = harness.run_load(tools, server, server.name, WARM_S + seconds, options, harness.OK)
    return result["rate"], (server.cpu_us() - before) / result["sent"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--realtime", action="store_true")
    args = parser.parse_args()
    if args.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    figures = {name: [] for name in SERVERS}
    with tempfile.TemporaryDirectory(prefix="pawl-bench-") as folder:
        logs = [pathlib.Path(folder) / name for name in SERVERS]
        with harness.Server([args.tools / SERVERS[0]], r"^listening (\d+)$", logs[0]) as one, \
             harness.Server([args.tools / SERVERS[1]], r"^listening (\d+)$", logs[1]) as other:
            for number in range(args.rounds):
                for server in (one, other) if number % 2 == 0 else (other, one):
                    figures[server.name].append(measure(args.tools, server, args.seconds))
    rates = {}
    for name, measured in figures.items():
        rates[name] = statistics.median(rate for rate, _ in measured)
        print(f"{name:<10} {rates[name]:>9,.0f}/s  {statistics.median(cpu for _, cpu in measured):.2f} us of CPU per answer")
    by_round = [own[0] / library[0] for library, own in zip(*figures.values())]
    print(f"ratio      {rates['bare_own'] / rates['bare_http']:.2f}  by round {min(by_round):.2f} to {max(by_round):.2f}")


if __name__ == "__main__":
    main()
