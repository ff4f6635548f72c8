"""The server under test and everything around it: its small disk, its clock, NATS, the receiver of its calls, and a proxy on
every way between them."""
import collections
import contextlib
import os
import random
import signal
import tempfile
import time

import fault_proxy
import faults
import harness
import nats
import small_disk
from harness import wait_until
from lasting_clients import kill_while_starting
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


class World:
    def __init__(self, folder, library, ledger, seed):
        self.folder, self.rng = folder, random.Random(f"{seed}-world")
        self.counts = collections.Counter()
        self.disk = small_disk.make(folder)
        self.clock = faults.Clock(folder)
        self.furthest_s, self.stride_s = 0, 600
        self.met_full_disk = False  # this process of the server has
        self.nats = nats.NatsServer(folder)
        self.receiver = Receiver()
        self.hooks = Hooks(self.receiver, ledger, seed)
        self.proxy = fault_proxy.Proxy(seed, "api", "bus", "hooks")
        self.server = harness.Server(folder, "--bus", f"nats://127.0.0.1:{self.proxy.ports['bus']}", "--log-level", "error", file="store/pawl.db", preload=library,
                                     env=faults.environment(PAWL_CLOCK_FILE=self.clock.file, **self.disk.environment))

    @property
    def port(self):
        """Where clients find the server, whichever process that is."""
        return self.proxy.ports["api"]

    def hook_url(self, path):
        return f"http://127.0.0.1:{self.proxy.ports['hooks']}{path}"

    def open(self):
        self.receiver.__enter__()
        self.nats.start()
        self.proxy.target("bus", self.nats.port)
        self.proxy.target("hooks", self.receiver.port)
        self.start()
        return self

    def start(self):
        self.met_full_disk = False
        self.server.start()
        self.proxy.target("api", self.server.port)

    def close(self):
        if self.server.process is not None:
            self.server.kill()
        if self.nats.process is not None:
            self.nats.kill()
        self.receiver.__exit__()
        self.proxy.close()
        self.disk.close()

    # --- faults ---

    def kill(self, twice=False):
        self.counts["kill"] += 1
        self.server.kill()
        if twice:
            self.counts["kill while starting"] += 1
            kill_while_starting(self.server, self.rng)
        self.start()

    def terminate(self):
        self.counts["terminate"] += 1
        self.check_end(self.server.stop())
        self.start()

    def freeze(self, seconds):
        """Stopped for longer than leases last."""
        self.counts["freeze"] += 1
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)  # the length of the fault
        self.server.process.send_signal(signal.SIGCONT)

    def jump(self, seconds):
        """Within two hours of the machine's clock: the feed keeps its events for three days."""
        self.counts["jump forward" if seconds > 0 else "jump back"] += 1
        self.clock.set(max(-7200, min(7200, self.clock.offset_s + seconds)))
        self.furthest_s = max(self.furthest_s, self.clock.offset_s)

    def pass_all_times(self):
        """The clock goes past everything that was ever due."""
        self.furthest_s += self.stride_s
        self.stride_s = min(2 * self.stride_s, 4 * 3600)
        self.clock.set(self.furthest_s)

    def fill_disk(self):
        self.counts["fill"] += 1
        self.met_full_disk = True
        self.disk.fill()

    def has_stopped(self):
        """By itself."""
        return self.server.process.poll() is not None

    def check_end(self, code):
        """A server that met a full disk may have stopped by itself; any other ends well."""
        assert code == 0 or (code == 1 and self.met_full_disk), f"the server ended with {code}\n{self.server.log()[-4000:]}"
        self.counts["stop by itself"] += code

    def supervise(self):
        """A server that has stopped by itself is started again."""
        if self.has_stopped():
            self.check_end(self.server.ended())
            self.start()

    def free_disk(self):
        self.disk.free()

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
        self.free_disk()
        self.supervise()
        self.restore_nats()
        for link in ("api", "bus", "hooks"):
            self.proxy.weather(link)
        self.pass_all_times()
        wait_until(lambda: self.server.client().get("/readyz").status == 200, "the server is ready")


@contextlib.contextmanager
def world(library, ledger, seed):
    with tempfile.TemporaryDirectory(prefix="pawl-chaos-") as folder:
        w = World(folder, library, ledger, seed)
        try:
            yield w.open()
        except BaseException:
            print(w.server.log()[-6000:])
            raise
        finally:
            w.close()
