"""One server under test and everything around it: its small disk and its clock."""
import contextlib
import signal
import tempfile
import time

import faults
import harness
import observe
import small_disk
from harness import wait_until
from inspect_store import rows
from lasting_clients import kill_while_starting
from surroundings import Surroundings


class World(Surroundings):
    def __init__(self, folder, library, ledger, seed):
        super().__init__(folder, ledger, seed)
        self.disk = small_disk.make(folder)
        self.clock = faults.Clock(folder)
        self.met_full_disk = False  # this process of the server has
        self.server = harness.Server(folder, "--bus", self.bus_url, "--log-level", "error", file="store/pawl.db", preload=library,
                                     env=faults.environment(PAWL_CLOCK_FILE=self.clock.file, **self.disk.environment))

    def open(self):
        super().open()
        self.start()
        return self

    def start(self):
        self.met_full_disk = False
        self.server.start()
        self.proxy.target("api", self.server.port)

    def close(self):
        if self.server.process is not None:
            self.server.kill()
        super().close()
        self.disk.close()

    def log(self):
        return self.server.log()

    # --- what is in it ---

    @property
    def clock_offset_s(self):
        return self.clock.offset_s

    def set_clock(self, offset_s):
        self.clock.set(offset_s)

    def rows(self, sql):
        return rows(self.server.db, sql)

    def backlog(self):
        """(events that the bus lacks, webhook deliveries that wait)"""
        api = self.server.client()
        return api.get("/api/v1/outbox").json["depth"], observe.metric(api, "pawl_webhook_deliveries_waiting")

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

    def calm(self):
        self.free_disk()
        self.supervise()
        super().calm()
        wait_until(lambda: self.server.client().get("/readyz").status == 200, "the server is ready")


@contextlib.contextmanager
def world(library, ledger, seed):
    with tempfile.TemporaryDirectory(prefix="pawl-chaos-") as folder:
        w = World(folder, library, ledger, seed)
        try:
            yield w.open()
        except BaseException:
            print(w.log()[-6000:])
            raise
        finally:
            w.close()
