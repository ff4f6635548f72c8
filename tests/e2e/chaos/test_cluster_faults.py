"""Faults on a cluster of three nodes over PostgreSQL with a synchronous standby, under a load that uses every feature: nodes are killed, paused
and stopped, the database is restarted and its standby promoted, connections are cut and held, clocks go apart. Afterwards the ledger of
all acknowledgements is compared with what the cluster, NATS, the webhook's receiver and the streams say.

PAWL_FAULT_KILLS, _PAUSES, _RESTARTS, _PROMOTIONS and _OTHERS make it larger; PAWL_FAULT_SEED repeats the faults of a round that failed."""
import os
import random

import pytest

import cluster_plan
import fault_plan
import ledger as ledgers
import observe
import verdict
from chaos_round import Round
from cluster_world import cluster_world
from recount import assert_store_recounted

OTHERS = ("terminate", "cut_database", "cut_peers", "hold_database", "database_weather", "peer_weather", "client_weather", "skew")
FEW = ("cut_database", "cut_peers", "skew")  # of the others, in a small round


def asked_for():
    """{fault: how often}"""
    def number(name, default):
        return int(os.environ.get(f"PAWL_FAULT_{name}", default))

    return {"kill": number("KILLS", 3), "pause": number("PAUSES", 1), "restart": number("RESTARTS", 1), "promote": number("PROMOTIONS", 1),
            **dict.fromkeys(OTHERS if "PAWL_FAULT_OTHERS" in os.environ else FEW, number("OTHERS", 1))}


@pytest.mark.slow
@pytest.mark.sqlite("has a database of its own")
def test_a_cluster_loses_nothing_and_doubles_nothing_whatever_fails(fault_library, tmp_path):
    seed = int(os.environ.get("PAWL_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
    steps = cluster_plan.plan(seed, **asked_for())
    print(f"PAWL_FAULT_SEED={seed}\n{fault_plan.told(steps)}", flush=True)
    ledger = ledgers.Ledger(tmp_path / "ledger")
    with cluster_world(fault_library, ledger, seed) as w:
        r = Round(w, ledger, seed, light="PAWL_FAULT_KILLS" not in os.environ)
        r.begin()
        cluster_plan.Faults(w, r.check).carry_out(steps)
        r.settle()
        r.end()
        seen = observe.see(w.client(timeout=600), w)
        print(w.told_times())
        print("\n".join(f"{count:8} {what}" for what, count in sorted(r.counts(seen).items())))
        broken = verdict.broken_promises(ledgers.Book(ledger.path), seen, ledger.refusals, verdict.CLUSTER_REFUSALS)
        assert not broken, verdict.told(broken)
        w.stop()
        w.in_each_shard(lambda store: assert_store_recounted(store) or [])
