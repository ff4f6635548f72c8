#!/usr/bin/env python3
"""A worker that is offered its jobs on NATS JetStream, and claims and completes them over HTTP.

usage: worker.py QUEUE [JOBS]      ends after so many jobs; without a number never
"""
import json
import os
import socket
import sys
import urllib.error
import urllib.parse
import urllib.request

PAWL = os.environ.get("PAWL_URL", "http://127.0.0.1:7295")
NATS = urllib.parse.urlparse(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
TENANT = os.environ.get("PAWL_TENANT", "default")
NAME = f"nats-{os.getpid()}"


class Offers:
    """A pull consumer on the stream PAWL_JOBS, in NATS's text protocol."""

    def __init__(self, queue):
        self.socket = socket.create_connection((NATS.hostname, NATS.port or 4222))
        self.lines = self.socket.makefile("rb")
        self.queue = queue
        self.say('CONNECT {"verbose":false,"headers":true}', f"SUB _INBOX.{NAME} 1")
        config = {"durable_name": queue, "ack_policy": "explicit", "filter_subject": f"pawl-jobs.{queue}", "ack_wait": 30_000_000_000}
        self.ask(f"CONSUMER.DURABLE.CREATE.PAWL_JOBS.{queue}", {"stream_name": "PAWL_JOBS", "config": config})
        self.message()  # it is there, now or from before

    def say(self, *lines):
        self.socket.sendall("".join(line + "\r\n" for line in lines).encode())

    def ask(self, what, body):
        text = json.dumps(body)
        self.say(f"PUB $JS.API.{what} _INBOX.{NAME} {len(text)}", text)

    def message(self):
        """(where to acknowledge, body) of the next message."""
        while True:
            words = self.lines.readline().decode().split()
            if not words:
                sys.exit("NATS has closed the connection")
            if words[0] == "PING":
                self.say("PONG")
            if words[0] in ("MSG", "HMSG"):
                head = int(words[-2]) if words[0] == "HMSG" else 0
                body = self.lines.read(int(words[-1]) + 2)
                return words[3], body[head:-2]

    def next(self):
        while True:  # a request that finds nothing ends after half a minute with an empty message
            self.ask(f"CONSUMER.MSG.NEXT.PAWL_JOBS.{self.queue}", {"batch": 1, "expires": 30_000_000_000})
            reply, body = self.message()
            if body:
                return reply, json.loads(body)

    def acknowledge(self, reply):
        self.say(f"PUB {reply} 4", "+ACK")


def post(path, body):
    request = urllib.request.Request(f"{PAWL}/api/v1/jobs/{path}", json.dumps(body).encode(), {"Content-Type": "application/json", "X-Tenant-ID": TENANT})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def work(job):
    return f"Hello, {job['input']['name']}!"


def main(queue, jobs=0):
    offers, done = Offers(queue), 0
    while not jobs or done < jobs:
        reply, offer = offers.next()
        try:
            job = post(f"{offer['job_id']}/claim", {"worker_id": NAME, "lease_ms": 10000})
        except urllib.error.HTTPError as refused:
            if refused.code == 409:  # somebody else has it, or it is over
                offers.acknowledge(reply)
                continue
            raise
        offers.acknowledge(reply)
        result = post(f"{job['job_id']}/complete", {"lease_token": job["lease_token"], "output": work(job)})
        print(offer["handler"], "attempt", job["attempt"], result["status"], flush=True)
        done += 1


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
