#!/usr/bin/env python3
"""Does one job: input on standard input, output on standard output, the exit code decides. `pawl worker` runs it.

The ledger stands for the world outside: the shop's stock, the bank, the carrier. An effect goes into it under the
job's idempotency key, which is the same in every attempt, so that an attempt that is repeated adds nothing.
"""
import fcntl
import json
import os
import sys

KEY = os.environ["PAWL_IDEMPOTENCY_KEY"]


def effect(text):
    """Writes the line unless the key has one."""
    with open(os.environ["LEDGER"], "a+") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        ledger.seek(0)
        if not any(line.startswith(KEY) for line in ledger):
            ledger.write(f"{KEY} {text}\n")


def reserve(job):
    effect(f"reserved {job['item']}")


def put_back(job):
    effect(f"put back {job['item']}")


def charge(job):
    effect(f"charged {job['amount']}")
    if os.environ["PAWL_ATTEMPT"] == "1":
        sys.stderr.write("the bank took the money, but its answer was lost")
        sys.exit(75)  # try again
    return {"payment": "p-" + KEY[-6:]}


def refund(job):
    effect(f"refunded {job['amount']} of {job['payment']}")


def send(job):
    if job["city"] == "Atlantis":
        sys.stderr.write("nobody delivers to Atlantis")
        sys.exit(65)  # and never will
    effect(f"sent {job['item']} to {job['city']}")
    return {"parcel": "s-" + KEY[-6:]}


HANDLERS = {"stock.reserve": reserve, "stock.put_back": put_back, "payment.charge": charge, "payment.refund": refund, "shipping.send": send}

json.dump(HANDLERS[os.environ["PAWL_HANDLER"]](json.load(sys.stdin)), sys.stdout)
