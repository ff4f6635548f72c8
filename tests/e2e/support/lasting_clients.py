"""Clients and workers that outlive the server: through as many kills as a test likes, each request is repeated until it is answered."""
import http.client
import os
import subprocess
import threading
import time


class LastingClients:
    """Threads that go on until end(). Their answers come from whichever process of the server gives one."""

    def __init__(self, server):
        self.server = server
        self.changed = threading.Condition()
        self.client = server.client()
        self.unanswered = 0
        self.failures = []
        self.threads = []
        self._stopping = self._paused = False
        self._idle = 0

    def answered(self, ask):
        """ask(client) until an answer comes. What is asked must be safe to ask again."""
        while True:
            with self.changed:
                client = self.client
            try:
                return ask(client)
            except (OSError, http.client.HTTPException):
                with self.changed:
                    self.unanswered += 1
                    self.changed.wait_for(lambda: self.client is not client)

    def server_is_back(self):
        with self.changed:
            self.client = self.server.client()
            self.changed.notify_all()

    def goes_on(self):
        """For the head of a thread's loop: waits while the threads are paused; False at the end."""
        with self.changed:
            self._idle += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self._stopping or not self._paused)
            self._idle -= 1
            return not self._stopping

    def begin(self, *parts):
        """(function, how many threads): each is called with the thread's number."""
        for fn, count in parts:
            self.threads += [threading.Thread(target=self._guarded, args=(fn, i), daemon=True) for i in range(count)]
        for t in self.threads:
            t.start()

    def _guarded(self, fn, number):
        try:
            fn(number)
        except BaseException as e:  # handed to the test's thread
            with self.changed:
                self.failures.append(e)
                self.changed.notify_all()

    def pause(self):
        """Returns when no request is under way."""
        with self.changed:
            self._paused = True
            self.changed.wait_for(lambda: self._idle == len(self.threads) or self.failures)
        self.check()

    def resume(self):
        with self.changed:
            self._paused = False
            self.changed.notify_all()

    def end(self):
        with self.changed:
            self._stopping = True
            self.changed.notify_all()
        for t in self.threads:
            t.join()
        self.check()

    def check(self):
        if self.failures:
            raise self.failures[0]


def kill_while_starting(server, rng):
    """One more kill, before the server is ready: also what a start writes may be cut off anywhere."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
    with subprocess.Popen(server.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=server.folder) as p:
        time.sleep(rng.uniform(0, 0.02))  # the moment is random; nothing is waited for
        p.kill()
