"""The worker of the story: an order as a durable function, and a rewards account. Killed at any moment."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import uuid
from typing import Any

import pawl

BANK, FLAVOUR = sys.argv[1:]


def pay(key: str, what: str) -> dict[str, str]:
    """A service of its own: it does what it is asked once per key, and remembers every call."""
    bank = sqlite3.connect(BANK, timeout=60)
    with bank:
        bank.execute("INSERT INTO calls VALUES (?, ?)", (key, what))
        bank.execute("INSERT OR IGNORE INTO effects VALUES (?, ?, ?)", (key, what, str(uuid.uuid4())))
    (found,) = bank.execute("SELECT id FROM effects WHERE key = ?", (key,)).fetchone()
    bank.close()
    return {"id": found}


PATIENT = {"retry": pawl.Retry(deadline=300), "budget": pawl.Budget(1e6, 1e6)}
RULE: pawl.RetryRule = {"max_attempts": 1000, "backoff_ms": 50, "max_backoff_ms": 200}


def with_threads() -> None:
    client = pawl.Client(**PATIENT)  # type: ignore[arg-type]
    worker = pawl.Worker(client, queues="story", concurrency=4, lease=1.0)

    @worker.workflow("order", retry=RULE)
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

    count_points(worker.entity("account", initial={"points": 0, "signals": 0}))
    worker.run()


async def with_asyncio() -> None:
    client = pawl.AsyncClient(**PATIENT)  # type: ignore[arg-type]
    worker = pawl.AsyncWorker(client, queues="story", concurrency=4, lease=1.0)

    @worker.workflow("order", retry=RULE)
    async def order(input: Any, ctx: pawl.AsyncContext) -> Any:
        charge = await ctx.step("charge", lambda: asyncio.to_thread(pay, ctx.key, "charge"))
        await ctx.sleep("cool-off", 0.05)
        paid = await ctx.wait_signal("paid")
        ok = await ctx.approval("ok", f"Ship order {input['n']}?")
        ship = await ctx.step("ship", lambda: asyncio.to_thread(pay, ctx.key, "ship"))
        await ctx.step("reward", lambda: reward(input["customer"], ctx.key))
        return {"charge": charge["id"], "paid": paid, "by": ok.by, "ship": ship["id"]}

    async def reward(customer: str, key: str) -> None:
        await client.entities.signal("account", customer, "add", {"points": 10}, dedup_key=key)

    count_points(worker.entity("account", initial={"points": 0, "signals": 0}))
    await worker.run()


def count_points(account: pawl.Entity) -> None:
    @account.on("add")
    def add(account: pawl.EntityContext, payload: Any) -> None:
        account.state["points"] += payload["points"]
        account.state["signals"] += 1


if FLAVOUR == "sync":
    with_threads()
else:
    asyncio.run(with_asyncio())
