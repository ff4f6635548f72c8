"""Which faults come to a cluster, in which order: all from the seed and the numbers that are asked for, and printed before the first one."""
import random
import time

from fault_plan import WEATHERS

NODES = 3
# A connection to the database has many pieces of data in a request.
DATABASE_WEATHERS = {"slow": {"delay_ms": 15}, "lose answers": {"lose_in": 0.02}, "cut requests": {"cut_out": 0.02}, "cut answers": {"cut_in": 0.02}}
LEASE_S = 5  # of a node


def choose(rng):
    """{fault: draw() → its arguments}"""
    def node():
        return {"number": rng.randrange(NODES)}

    return {
        "kill": lambda: {**node(), "at_once": rng.random() < 0.4},
        "pause": lambda: {**node(), "seconds": round(LEASE_S + rng.uniform(1, 3), 2)},
        "restart": lambda: {"crash": rng.random() < 0.5},
        "promote": lambda: {"silent": rng.random() < 0.5},
        "terminate": node,
        "cut database": node,
        "cut peers": node,
        "hold database": lambda: {**node(), "seconds": rng.choice((0.5, 2.0, LEASE_S + 2.0))},
        "database weather": lambda: {**node(), "name": rng.choice(list(DATABASE_WEATHERS)), "seconds": round(rng.uniform(0.5, 3.0), 2)},
        "peer weather": lambda: {**node(), "name": rng.choice(list(WEATHERS)), "seconds": round(rng.uniform(0.5, 3.0), 2)},
        "client weather": lambda: {"name": rng.choice(list(WEATHERS)), "seconds": round(rng.uniform(0.5, 2.0), 2)},
        "skew": lambda: {**node(), "seconds": rng.choice((-1, 1)) * rng.choice((2, 30, 400, 2000))},
    }


def plan(seed, **numbers):
    """[(pause before it, fault, arguments)], as many of each as `numbers` says ("_" stands for a space)."""
    rng = random.Random(f"{seed}-plan")
    draws = choose(rng)
    names = [name for name in draws for _ in range(numbers.get(name.replace(" ", "_"), 0))]
    rng.shuffle(names)
    return [(round(rng.uniform(0.1, 1.0), 2), name, draws[name]()) for name in names]


class Faults:
    """Carries a plan out on a ClusterWorld."""

    def __init__(self, world, check):
        self.world, self.check = world, check

    def carry_out(self, steps):
        for number, (pause, name, args) in enumerate(steps):
            time.sleep(pause)  # how often faults come; nothing is waited for
            self.check()
            self.world.supervise()
            if number % 10 == 0:
                self.world.measure_calm()
            print(f"{number:4} {name} {args or ''}", flush=True)
            getattr(self, name.replace(" ", "_"))(**args)

    def kill(self, number, at_once):
        self.world.kill(number, at_once)

    def pause(self, number, seconds):
        self.world.pause(number, seconds)

    def restart(self, crash):
        self.world.restart_database(crash)

    def promote(self, silent):
        self.world.promote(silent)

    def terminate(self, number):
        self.world.terminate(number)

    def cut_database(self, number):
        self.world.cut_links(*self.world.database_links(number))

    def cut_peers(self, number):
        self.world.cut_links(self.world.peer_link(number))

    def hold_database(self, number, seconds):
        self.weather(self.world.database_links(number), {"held": True}, seconds)

    def database_weather(self, number, name, seconds):
        self.weather(self.world.database_links(number), DATABASE_WEATHERS[name], seconds)

    def peer_weather(self, number, name, seconds):
        self.weather([self.world.peer_link(number)], WEATHERS[name], seconds)

    def client_weather(self, name, seconds):
        self.weather(["api"], WEATHERS[name], seconds)

    def weather(self, links, weather, seconds):
        for link in links:
            self.world.weather(link, **weather)
        time.sleep(seconds)  # the length of the fault
        for link in links:
            self.world.proxy.weather(link)
        self.world.await_service("trouble on the way", time.monotonic())

    def skew(self, number, seconds):
        self.world.skew(number, seconds)
