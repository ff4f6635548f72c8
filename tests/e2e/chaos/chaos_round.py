"""One round: the load begins, faults come, faults stop, everything ends, and what the server then says is collected."""
import collections
import time

import fault_plan
import harness
import ledger as ledgers
import load_clients
import load_people
import load_workers
import observe
import scene
import verdict
from actions import UNDER_WAY
from client import Client
from harness import wait_until
from lasting_clients import LastingClients
from pages import walk

# How many of each there are: in the usual load, and in one that costs half as much.
MAKERS = ((load_clients.Starter, 4, 2), (load_people.EntityClient, 2, 1), (load_people.Operator, 2, 1), (load_people.Governor, 1, 1),
          (load_people.Inspector, 1, 1))
FINISHERS = ((load_workers.Worker, 4, 2), (load_workers.EntityWorker, 2, 1), (load_people.Clicker, 2, 1), (load_clients.Signaller, 2, 1),
             (load_clients.Follower, 5, 4))


class Round:
    def __init__(self, world, ledger, seed, light=False):
        self.light = light
        self.world, self.ledger, self.seed = world, ledger, seed
        self.scene = scene.Scene(world, ledger, seed)
        self.makers, self.finishers = LastingClients(world), LastingClients(world)

    def check(self):
        self.makers.check()
        self.finishers.check()

    def begin(self):
        scene.prepare(self.world.client(), self.world.hook_url)
        for group, parts in ((self.finishers, FINISHERS), (self.makers, MAKERS)):
            group.begin(*((self.actor(kind, group), half if self.light else whole) for kind, whole, half in parts))

    def actor(self, kind, group):
        return lambda number: kind(self.scene, number).run(group.goes_on)

    def carry_out(self, steps):
        fault_plan.Faults(self.world, self.ledger, self.check).carry_out(steps)

    # --- after the faults ---

    def settle(self):
        """No more faults and no new work. What is in doubt is asked again, and then everything must end by itself."""
        self.world.calm()
        self.makers.end()
        last = Client(self.world.port, self.ledger, f"{self.seed}-last")
        self.clear_doubts(last)
        self.stop_schedules(last)
        self.come_to_rest(last)
        for tenant in scene.TENANTS:
            body = {"name": observe.LAST_MARK, "payload": {"n": 0, "points": 0}, "dedup_key": "last"}
            last.ask("mark", "POST", f"/api/v1/entities/{scene.MARK}/limit/signals", body, tenant, entity="limit", points=0, n=0)
        self.come_to_rest(last)

    def clear_doubts(self, last):
        """What nobody asks for any more is asked again with the same key, as often as needed."""
        taken = self.ledger.take_abandoned()
        if not taken:
            return
        book = ledgers.Book(self.ledger.path)
        for op in (book.ops[number] for number in taken):
            if op.kind != "claim":  # a claim that was lost is made good by its lease
                answer = last.repeat(op)
                if answer.run_id and "workflow" in op.facts:
                    self.scene.add_run(op.tenant, answer.run_id, op.facts["workflow"])

    @staticmethod
    def stop_schedules(last):
        for tenant in scene.TENANTS:
            for schedule in last.get("/api/v1/schedules", tenant).json["items"]:
                last.ask("unschedule", "DELETE", f"/api/v1/schedules/{schedule['id']}", None, tenant, last.new_key("schedule"))

    def come_to_rest(self, last):
        """As long as anything moves it is waited for. What a person or a clock would have to do is done."""
        api, before, still_since = self.world.client(timeout=120), None, time.monotonic()
        while left := observe.under_way(api, self.world):
            self.finishers.check()
            self.clear_doubts(last)
            for tenant in scene.TENANTS:
                for run in walk(api, "/api/v1/runs?status=paused&limit=200", tenant):
                    last.ask("resume", "POST", f"/api/v1/runs/{run['id']}/resume", {}, tenant, run=run["id"])
            now = (left, len(self.world.hooks.events))
            if now != before:
                before, still_since = now, time.monotonic()
            elif time.monotonic() - still_since > 3:
                self.world.pass_all_times()
            assert time.monotonic() - still_since < 3 * harness.PATIENCE_S, f"nothing moves any more, but there is left: {left} {self.reasons(api)}"
            time.sleep(0.1)

    @staticmethod
    def reasons(api):
        """What the runs that are left wait for."""
        left = [(tenant, run["id"]) for tenant in scene.TENANTS for status in UNDER_WAY for run in walk(api, f"/api/v1/runs?status={status}&limit=200", tenant)]
        return [api.get(f"/api/v1/runs/{run}/why", tenant=tenant).json for tenant, run in left[:10]]

    def end(self):
        """The streams are read to the last mark, and the bus and the webhook have it; then nobody is left."""
        wait_until(self.followers_are_done, "the streams are read to their end", 3 * harness.PATIENCE_S)
        wait_until(lambda: observe.marks_arrived(self.world), "the last mark has gone everywhere", 3 * harness.PATIENCE_S)
        self.finishers.end()

    def followers_are_done(self):
        self.finishers.check()
        return self.scene.streams_ended == set(scene.TENANTS)

    def counts(self, seen):
        """How much happened, and how much went wrong."""
        counts = collections.Counter({"operations": self.ledger.ops, "acknowledgements": self.ledger.acknowledged, "attempts without an answer": self.ledger.unanswered,
                                      "runs": len(verdict.created_runs(seen)), "runs that retention removed": len(verdict.created_runs(seen) - set(seen.timelines)),
                                      "events on the bus": len(seen.bus), "webhook deliveries": len(seen.delivered), "events on streams": self.ledger.done["streamed"]})
        counts.update({f"refused with {why}": n for why, n in self.ledger.refusals.items()})
        counts.update({f"fault {name}": n for name, n in self.world.counts.items()})
        counts.update({f"proxy {name}": n for name, n in self.world.proxy.counts().items()})
        return counts
