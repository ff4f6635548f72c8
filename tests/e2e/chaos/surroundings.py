"""What is around the servers of a round: NATS, the receiver of their calls, their clock, and a proxy on every way between them."""
import collections
import os
import random
import signal
import time

import fault_proxy
import harness
import nats
from cli import free_port
from receiver import Receiver


class Hooks:
    """Receives webhooks and the calls of http steps. Its mood says what becomes of the answers: `well`, `refuses`, `hangs`, or
    `forgets` (it acts and does not answer). What it took is kept."""

    def __init__(self, receiver, ledger, seed):
        self.receiver, self.ledger = receiver, ledger
        self.rng, self.mood = random.Random(seed), "well"
        self.events = []  # (webhook id, body) in the order of arrival
        receiver.on("/events", self.take_event)
        receiver.on("/step", self.take_step)
        receiver.on("/spare", lambda handler, sent: handler.answer(200))

    def take_event(self, handler, sent):
        if self.mood == "refuses" and self.rng.random() < 0.7:
            return handler.answer(500)
        with self.receiver.lock:
            self.events.append((sent.headers["webhook-id"], sent.json))
        return self.acknowledge(handler, {})

    def take_step(self, handler, sent):
        """Acts once for each key, as a good receiver does, and says when it did."""
        if self.mood == "refuses" and self.rng.random() < 0.7:
            return handler.answer(503)
        with self.receiver.lock:
            number = self.receiver.effects.index(sent.key) if sent.key in self.receiver.effects else len(self.receiver.effects)
            if number == len(self.receiver.effects):
                self.receiver.effects.append(sent.key)
                self.ledger.note("called", job=sent.key, number=number)
        return self.acknowledge(handler, {"number": number})

    def acknowledge(self, handler, body):
        if self.mood == "forgets" and self.rng.random() < 0.5:
            handler.close_connection = True  # it is done, and nobody learns of it
            return None
        if self.mood == "hangs":
            self.receiver.gate.wait(self.rng.uniform(0.5, 2.5))
        return handler.answer(200, body)


class Surroundings:
    """What every world has: see World (one server) and ClusterWorld (several nodes). `links` are those of its proxy, besides "api" for
    clients, "bus" for NATS and "hooks" for the receiver."""

    def __init__(self, folder, ledger, seed, *links):
        self.folder, self.rng = folder, random.Random(f"{seed}-world")
        self.counts = collections.Counter()
        self.furthest_s, self.stride_s = 0, 600
        self.nats = nats.NatsServer(folder)
        self.receiver = Receiver()
        self.hooks = Hooks(self.receiver, ledger, seed)
        self.proxy = fault_proxy.Proxy(seed, {link: free_port() for link in ("api", "bus", "hooks", *links)})

    @property
    def port(self):
        """Where clients find a server, whichever process that is."""
        return self.proxy.ports["api"]

    @property
    def bus_url(self):
        return f"nats://127.0.0.1:{self.proxy.ports['bus']}"

    def hook_url(self, path):
        return f"http://127.0.0.1:{self.proxy.ports['hooks']}{path}"

    def client(self, **kw):
        """One that needs no patience, once all is calm."""
        return harness.Client(self.port, **kw)

    def open(self):
        self.receiver.__enter__()
        self.nats.start()
        self.proxy.target("bus", self.nats.port)
        self.proxy.target("hooks", self.receiver.port)

    def close(self):
        if self.nats.process is not None:
            self.nats.kill()
        self.receiver.__exit__()
        self.proxy.close()

    def pass_all_times(self):
        """The clock goes past everything that was ever due."""
        self.furthest_s += self.stride_s
        self.stride_s = min(2 * self.stride_s, 4 * 3600)
        self.set_clock(self.furthest_s)

    # --- faults ---

    def lose_nats(self):
        self.counts["nats kill"] += 1
        self.nats.kill()

    def restore_nats(self):
        if self.nats.process is None:
            self.nats.start()

    def freeze_nats(self, seconds):
        self.counts["nats freeze"] += 1
        os.kill(self.nats.process.pid, signal.SIGSTOP)
        time.sleep(seconds)  # the length of the fault
        os.kill(self.nats.process.pid, signal.SIGCONT)

    def weather(self, link, **weather):
        self.counts[f"weather {link}"] += 1
        self.proxy.weather(link, **weather)

    def cut(self, link):
        self.counts[f"cut {link}"] += 1
        self.proxy.cut(link)

    def mood(self, mood):
        self.counts[f"receiver {mood}"] += 1
        self.hooks.mood = mood

    def calm(self):
        """No fault is left."""
        self.hooks.mood = "well"
        self.restore_nats()
        for link in self.proxy.ports:
            self.proxy.weather(link)
        self.pass_all_times()
