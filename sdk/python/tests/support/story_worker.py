"""The worker of the story: an order as a durable function, and a rewards account. Killed at any moment."""

from __future__ import annotations

import sqlite3
import sys
import uuid
from typing import Any

import pawl

BANK = sys.argv[1]


def pay(key: str, what: str) -> dict[str, str]:
    """A service of its own: it does what it is asked once per key, and remembers every call."""
    bank = sqlite3.connect(BANK, timeout=60)
    with bank:
        bank.execute("INSERT INTO calls VALUES (?, ?)", (key, what))
        bank.execute("INSERT OR IGNORE INTO effects VALUES (?, ?, ?)", (key, what, str(uuid.uuid4())))
    (found,) = bank.execute("SELECT id FROM effects WHERE key = ?", (key,)).fetchone()
    bank.close()
    return {"id": found}


client = pawl.Client(retry=pawl.Retry(deadline=300), budget=pawl.Budget(1e6, 1e6))
worker = pawl.Worker(client, queues="story", concurrency=4, lease=1.0)


@worker.workflow("order", retry={"max_attempts": 1000, "backoff_ms": 50, "max_backoff_ms": 200})
def order(input: Any, ctx: pawl.Context) -> Any:
    charge = ctx.step("charge", lambda: pay(ctx.key, "charge"))
    ctx.sleep("cool-off", 0.05)
    paid = ctx.wait_signal("paid")
    ok = ctx.approval("ok", f"Ship order {input['n']}?")
    ship = ctx.step("ship", lambda: pay(ctx.key, "ship"))
    ctx.step("reward", lambda: reward(input["customer"], ctx.key))
    return {"charge": charge["id"], "paid": paid, "by": ok.by, "ship": ship["id"]}


def reward(customer: str, key: str) -> None:
    client.entities.signal("account", customer, "add", {"points": 10}, dedup_key=key)


account = worker.entity("account", initial={"points": 0, "signals": 0})


@account.on("add")
def add(account: pawl.EntityContext, payload: Any) -> None:
    account.state["points"] += payload["points"]
    account.state["signals"] += 1


worker.run()
