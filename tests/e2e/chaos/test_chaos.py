"""Chaos on the real binary: every feature under load while everything around the server fails; afterwards the ledger of all
acknowledgements is compared with what the server, NATS, the webhook's receiver and the streams say.

PAWL_CHAOS_SECONDS of faults make it a soak of several rounds; PAWL_CHAOS_SEED repeats the faults of a round that failed."""
import collections
import os
import random

import pytest

import fault_plan
import ledger as ledgers
import observe
import verdict
from chaos_round import Round
from inspect_store import doctor_on_file
from recount import assert_recounted
from world import world

SECONDS = float(os.environ.get("PAWL_CHAOS_SECONDS", "30"))
ROUND_S = 120  # at most: what a round leaves behind is compared in memory


def live_through(library, folder, seed, seconds):
    """One round of so many seconds of faults. What happened in it."""
    steps = fault_plan.plan(seed, seconds)
    print(f"PAWL_CHAOS_SEED={seed} PAWL_CHAOS_SECONDS={seconds:g}\n{fault_plan.told(steps)}")
    ledger = ledgers.Ledger(folder / f"ledger-{seed}")
    with world(library, ledger, seed) as w:
        r = Round(w, ledger, seed)
        r.begin()
        r.carry_out(steps)
        r.settle()
        r.end()
        seen = observe.see(w.client(timeout=600), w)
        counts = r.counts(seen)
        broken = verdict.broken_promises(ledgers.Book(ledger.path), seen, ledger.refusals)
        assert not broken, verdict.told(broken)
        assert w.server.stop() == 0
        assert_recounted(w.server.db)
        doctor_on_file(w.server.db)
    return counts


@pytest.mark.sqlite("the disk under the file fills up")
def test_nothing_acknowledged_is_lost_or_doubled_whatever_fails(fault_library, tmp_path):
    seed = int(os.environ.get("PAWL_CHAOS_SEED", random.SystemRandom().randrange(1 << 32)))
    total, left = collections.Counter(), SECONDS
    while left > 0:
        seconds = min(left, ROUND_S)
        total += live_through(fault_library, tmp_path, seed, seconds)
        seed, left = seed + 1, left - seconds
    print("\n".join(f"{count:8} {what}" for what, count in sorted(total.items())))
