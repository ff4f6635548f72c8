#!/usr/bin/python3
"""Stands in for `pawl` in tests: `serve` on PostgreSQL becomes three nodes behind a plain round-robin of connections, so
that any suite runs on a cluster. Every other command goes to pawl itself, and so does `serve` on another store or with --node,
which is a node of a cluster that a test makes for itself.

PAWL_BIN=tests/tools/three_nodes.py THREE_NODES_PAWL=build/pawl python3 -m pytest …

kill -9 of this process is kill -9 of all nodes; SIGTERM stops them in an orderly way. The other signals and the environment
reach every node. What the nodes log is logged here."""
import asyncio
import collections
import ctypes
import itertools
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
PAWL = os.environ.get("THREE_NODES_PAWL", str(ROOT / "build/pawl"))
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


async def carry(reader, writer):
    """Bytes from one connection to the other until the end, which is passed on."""
    while data := await reader.read(BUFFER):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def connect(nodes, turn):
    """To the node whose turn it is; to the next one when that is not there. None: to no node."""
    for i in range(len(nodes)):
        try:
            return await asyncio.wait_for(asyncio.open_connection(*nodes[(turn + i) % len(nodes)].address, limit=BUFFER), 10)
        except (OSError, asyncio.TimeoutError):
            continue
    return None


def keep_little(writer, option):
    """A node must see what its client does not take: little may be kept on the way."""
    writer.transport.set_write_buffer_limits(0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, option, BUFFER)


async def serve_connection(client, nodes, turn):
    client_reader, client_writer = client
    node = await connect(nodes, turn)
    if node is None:
        client_writer.close()
        return
    node_reader, node_writer = node
    keep_little(node_writer, socket.SO_RCVBUF)
    keep_little(client_writer, socket.SO_SNDBUF)
    try:
        await asyncio.gather(carry(client_reader, node_writer), carry(node_reader, client_writer))
        client_writer.close()
        node_writer.close()
    except OSError:  # one side has gone: the other one sees it
        client_writer.transport.abort()
        node_writer.transport.abort()


async def serve_all(listener, nodes):
    """One thread for all connections, of which a test may have thousands."""
    turns = itertools.count()
    server = await asyncio.start_server(lambda *client: serve_connection(client, nodes, next(turns)), sock=listener, backlog=1024, limit=BUFFER)
    await server.serve_forever()


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
    port = listener.getsockname()[1]
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
    loop = asyncio.new_event_loop()
    serving = asyncio.run_coroutine_threadsafe(serve_all(listener, nodes), loop)
    threading.Thread(target=loop.run_forever, daemon=True).start()
    for node in nodes:
        threading.Thread(target=stop_with, args=(node,), daemon=True).start()
    scheme = nodes[0].url.split("://")[0]
    print(f"pawl listening on {scheme}://{host}:{port}", flush=True)
    while True:
        got = signal.sigwait(signals)
        for node in nodes:
            node.process.send_signal(got)
        if got != signal.SIGHUP:
            break
    serving.cancel()
    return max(abs(node.process.wait()) for node in nodes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
