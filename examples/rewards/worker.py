#!/usr/bin/env python3
"""Handles one call of a customer's rewards: state, signals and due timers on standard input, the answer on standard output.

It changes nothing but what it answers, and that is applied as a whole or not at all. So it keeps no account of what it
has seen: pawl calls it once for each signal that counts, in order, for one customer at a time.
"""
import json
import sys

TIERS = [("gold", 1000), ("silver", 500), ("basic", 0)]
YEAR_MS = 365 * 24 * 3600 * 1000


def tier_of(points):
    return next(name for name, least in TIERS if points >= least)


class Customer:
    def __init__(self, state):
        self.state = state or {"points": 0, "tier": "basic", "idle_ms": YEAR_MS}
        self.answer = {"emit": [], "results": []}

    def emit(self, event, **payload):
        self.answer["emit"].append({"event": event, "payload": payload})

    def set_points(self, points):
        tier = tier_of(points)
        if tier != self.state["tier"]:
            self.emit(f"tier.{tier}", points=points)
        self.state.update(points=points, tier=tier)

    def idle(self):
        if self.state["points"] > 0:
            self.emit("points.expired", points=self.state["points"])
        self.set_points(0)

    # --- signals and updates by name: what they return is an update's result ---

    def enroll(self, idle_ms=YEAR_MS):
        self.state["idle_ms"] = idle_ms

    def add_points(self, points):
        self.set_points(self.state["points"] + points)

    def redeem(self, points):
        if points > self.state["points"]:
            raise ValueError(f"{points} of {self.state['points']} points")
        self.set_points(self.state["points"] - points)
        return {"left": self.state["points"]}

    def balance(self):
        return {"points": self.state["points"], "tier": self.state["tier"]}

    def unenroll(self):
        self.answer["finished"] = True

    def take(self, signal):
        result = {"seq": signal["seq"]}
        try:
            result["result"] = HANDLERS[signal["name"]](self, **(signal["payload"] or {}))
        except ValueError as refusal:
            result["error"] = {"code": "TOO_FEW_POINTS", "message": str(refusal)}
        if signal.get("update"):
            self.answer["results"].append(result)


HANDLERS = {"enroll": Customer.enroll, "add-points": Customer.add_points, "redeem": Customer.redeem, "balance": Customer.balance,
            "unenroll": Customer.unenroll}


def main():
    call = json.load(sys.stdin)
    customer = Customer(call["state"])
    if any(timer["name"] == "idle" for timer in call["timers"]):
        customer.idle()
    for signal in call["signals"]:
        customer.take(signal)
    if call["signals"]:  # each signal restarts the idle time; setting a timer replaces the one of that name
        customer.answer["set_timers"] = [{"name": "idle", "in_ms": customer.state["idle_ms"]}]
    json.dump({"state": customer.state, **customer.answer}, sys.stdout)


main()
