"""Which faults come, in which order and for how long: all from the seed, and printed before the first one."""
import random
import time

import harness
from harness import wait_until

WEATHERS = {
    "slow": {"delay_ms": 60},
    "dribble": {"dribble": 0.3},
    "cut requests": {"cut_out": 0.08},
    "cut answers": {"cut_in": 0.08},
    "lose answers": {"lose_in": 0.10},
    "half close": {"half_close": 0.08},
    "storm": {"delay_ms": 20, "dribble": 0.05, "cut_out": 0.03, "cut_in": 0.03, "lose_in": 0.03, "half_close": 0.03},
}
# The api link has requests of a few pieces each; the bus has one connection for everything and would never get anywhere.
BUS_WEATHERS = {"slow": {"delay_ms": 30}, "lose answers": {"lose_in": 0.02}, "cut requests": {"cut_out": 0.02}}
OFTEN = {"kill": 8, "kill again": 4, "api weather": 4, "full disk": 2, "freeze": 2, "clock forward": 2, "clock back": 2}
STEP_S = 1.2  # between two faults, on average


def choose(rng):
    """{fault: draw(rng) → its arguments}"""
    return {
        "kill": lambda: {"twice": rng.random() < 0.3},
        "kill again": lambda: {"twice": False},
        "terminate": dict,
        "freeze": lambda: {"seconds": round(rng.uniform(1.3, 2.2), 2)},
        "full disk": lambda: {"then": rng.choice(("free", "kill", "terminate"))},
        "api weather": lambda: {"name": rng.choice(list(WEATHERS))},
        "cut api": dict,
        "bus weather": lambda: {"name": rng.choice(list(BUS_WEATHERS))},
        "lose nats": lambda: {"seconds": round(rng.uniform(0.2, 2.0), 2)},
        "freeze nats": lambda: {"seconds": round(rng.uniform(0.3, 1.5), 2)},
        "hook weather": lambda: {"name": rng.choice(list(WEATHERS))},
        "receiver": lambda: {"mood": rng.choice(("refuses", "hangs", "forgets", "well"))},
        "clock forward": lambda: {"seconds": rng.choice((2, 30, 400, 4000))},
        "clock back": lambda: {"seconds": -rng.choice((2, 30, 400, 4000))},
        "calm": dict,
    }


def plan(seed, seconds):
    """[(pause before it, fault, arguments)]: each fault at least once, then as many as fit into the time."""
    rng = random.Random(f"{seed}-plan")
    draws = choose(rng)
    names = rng.sample(list(draws), len(draws))
    names += rng.choices(list(draws), [OFTEN.get(name, 1) for name in draws], k=max(0, round(seconds / STEP_S) - len(names)))
    return [(round(rng.uniform(0.2, 2 * STEP_S - 0.4), 2), name, draws[name]()) for name in names]


def told(steps):
    return "\n".join(f"  {i:3} after {pause:.2f} s: {name} {args or ''}" for i, (pause, name, args) in enumerate(steps))


class Faults:
    """Carries a plan out on a world."""

    def __init__(self, world, ledger, check):
        self.world, self.ledger, self.check = world, ledger, check

    def carry_out(self, steps):
        for pause, name, args in steps:
            time.sleep(pause)  # how often faults come; nothing is waited for
            self.check()
            self.world.supervise()
            getattr(self, name.replace(" ", "_"))(**args)

    def kill(self, twice):
        self.world.kill(twice)

    def kill_again(self, twice):
        """As soon as somebody was answered."""
        self.world.kill(twice)
        before = self.ledger.acknowledged
        wait_until(lambda: self.ledger.acknowledged > before, "an acknowledgement after a kill")
        self.world.kill()

    def terminate(self):
        self.world.terminate()

    def freeze(self, seconds):
        self.world.freeze(seconds)

    def full_disk(self, then):
        """Until somebody was refused because of it, or the server could not tell what came of a commit and has stopped."""
        def refused():
            return sum(n for why, n in self.ledger.refusals.items() if "STORE_FULL" in why)

        before = refused()
        self.world.fill_disk()
        wait_until(lambda: refused() > before or self.world.has_stopped(), "a request meets the full disk", 10 * harness.PATIENCE_S)
        if then == "kill":
            self.world.counts["kill"] += 1
            self.world.server.kill()
        self.world.free_disk()
        if then == "kill":
            self.world.start()
        elif then == "terminate":
            self.world.terminate()

    def api_weather(self, name):
        self.world.weather("api", **WEATHERS[name])

    def cut_api(self):
        self.world.cut("api")

    def bus_weather(self, name):
        self.world.weather("bus", **BUS_WEATHERS[name])

    def lose_nats(self, seconds):
        self.world.lose_nats()
        time.sleep(seconds)  # the length of the fault
        self.world.restore_nats()

    def freeze_nats(self, seconds):
        self.world.freeze_nats(seconds)

    def hook_weather(self, name):
        self.world.weather("hooks", **WEATHERS[name])

    def receiver(self, mood):
        self.world.mood(mood)

    def clock_forward(self, seconds):
        self.world.jump(seconds)

    def clock_back(self, seconds):
        self.world.jump(seconds)

    def calm(self):
        for link in ("api", "bus", "hooks"):
            self.world.weather(link)
        self.world.mood("well")
