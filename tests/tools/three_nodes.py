#!/usr/bin/python3
"""Stands in for `pawl` in tests: `serve` on PostgreSQL becomes three nodes behind a plain round-robin of connections, so
that any suite runs on a cluster. Every other command goes to pawl itself, and so does `serve` on another store or with --node,
which is a node of a cluster that a test makes for itself.

PAWL_BIN=tests/tools/three_nodes.py PAWL_NODE_BIN=build/pawl python3 -m pytest …

kill -9 of this process is kill -9 of all nodes; SIGTERM stops them in an orderly way. The other signals and the environment
reach every node. What the nodes log is logged here."""
import collections
import ctypes
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAWL = os.environ.get("PAWL_NODE_BIN", str(ROOT / "build/pawl"))
NODES = 3
SHARDS = 6
PR_SET_PDEATHSIG = 1
PRELOAD = "THREE_NODES_PRELOAD"
# No proxy of the environment, and any certificate: it asks its own children.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=ssl._create_unverified_context()))
BUFFER = 1 << 16


def option(words, name):
    """The value of --name VALUE or --name=VALUE, of several the last; None: it is not there."""
    found = None
    for i, word in enumerate(words):
        if word == name:
            found = words[i + 1]
        elif word.startswith(f"{name}="):
            found = word.split("=", 1)[1]
    return found


def without(words, name):
    """The words without that option."""
    left, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word == name:
            skip = True
        elif not word.startswith(f"{name}="):
            left.append(word)
    return left


def in_the_child():
    """No thread may run in this process yet."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Node:
    """One server; its port is its own."""

    def __init__(self, number, words, listen_host):
        command = [PAWL, *words, "--node", f"n{number}", "--listen", f"{listen_host}:0"]
        env = {**os.environ, **({"LD_PRELOAD": os.environ[PRELOAD]} if PRELOAD in os.environ else {})}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=in_the_child)  # pylint: disable=subprocess-popen-preexec-fn

    def wait_ready(self):
        """(host, port) where it listens."""
        line = self.process.stdout.readline()
        if "listening on" not in line:
            return None
        self.url = line.split(" on ")[1].strip()
        host, port = self.url.split("://")[1].rsplit(":", 1)
        self.address = (host.strip("[]"), int(port))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        return self.address


    def owners(self):
        """Of each shard, as this node knows them; None: nobody serves it now."""
        try:
            with OPENER.open(f"{self.url}/readyz", timeout=10) as answer:
                return [shard["owner"] if shard["state"] == "serving" else None for shard in json.load(answer)["shards"]]
        except (urllib.error.URLError, OSError, ValueError):
            return [None]


def wait_until_shared(nodes):
    """Until every node has its share of the shards, and all know: from then on no shard moves. False: a node has ended."""
    while all(node.process.poll() is None for node in nodes):
        known = [node.owners() for node in nodes]
        shares = collections.Counter(known[0])
        if None not in known[0] and all(k == known[0] for k in known) and len(shares) == min(NODES, len(known[0])) and max(shares.values()) - min(shares.values()) <= 1:
            return True
        time.sleep(0.05)
    return False


def carry(source, target):
    """Bytes from one socket to the other until the end, which is passed on."""
    try:
        while data := source.recv(BUFFER):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed already


def serve_connection(client, nodes, turn):
    """To the node whose turn it is; to the next one when that is not there."""
    for i in range(len(nodes)):
        try:
            node = socket.create_connection(nodes[(turn + i) % len(nodes)].address, timeout=10)
        except OSError:
            continue
        node.settimeout(None)
        node.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A node must see what its client does not take: little may be kept on the way.
        node.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        with client, node:
            back = threading.Thread(target=carry, args=(node, client), daemon=True)
            back.start()
            carry(client, node)
            back.join()
        return
    client.close()


def accept_all(listener, nodes):
    """Until the listener is closed."""
    turn = 0
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve_connection, args=(client, nodes, turn), daemon=True).start()
        turn += 1


def stop_with(node):
    """When one node ends by itself, all do, as one server would."""
    node.process.wait()
    os.kill(os.getpid(), signal.SIGTERM)


def without_preload():
    """A library that is to make calls of the nodes fail must not be loaded here."""
    library = os.environ.pop("LD_PRELOAD", None)
    if library:
        os.environ[PRELOAD] = library
        os.execv(sys.executable, [sys.executable, *sys.argv])


def main(words):
    store = option(words, "--store") or os.environ.get("PAWL_STORE", "")
    if words[:1] != ["serve"] or option(words, "--node") or not store.startswith(("postgres://", "postgresql://")):
        os.execv(PAWL, [PAWL, *words])
    without_preload()
    host, port = (option(words, "--listen") or os.environ.get("PAWL_LISTEN", "127.0.0.1:7295")).rsplit(":", 1)
    listener = socket.create_server((host.strip("[]"), int(port)), backlog=1024)
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    # Refused if a server was here before, which then goes on with what there is; the nodes say what else may be wrong.
    subprocess.run([PAWL, "cluster", "init", "--shards", str(SHARDS), "--store", store], check=False, capture_output=True)
    cert = option(words, "--tls-cert")
    words = [*without(words, "--listen"), *(["--node-ca", cert] if cert else [])]
    nodes = [Node(number, words, host) for number in range(1, NODES + 1)]
    for node in nodes:
        if node.wait_ready() is None:  # it has said why
            return node.process.wait()
    if not wait_until_shared(nodes):
        return 1
    threading.Thread(target=accept_all, args=(listener, nodes), daemon=True).start()
    for node in nodes:
        threading.Thread(target=stop_with, args=(node,), daemon=True).start()
    scheme = nodes[0].url.split("://")[0]
    print(f"pawl listening on {scheme}://{host}:{listener.getsockname()[1]}", flush=True)
    while True:
        got = signal.sigwait(signals)
        for node in nodes:
            node.process.send_signal(got)
        if got != signal.SIGHUP:
            break
    listener.close()
    return max(abs(node.process.wait()) for node in nodes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
