"""A TCP proxy whose links fail on command, as a process of its own.

    python3 fault_proxy.py '{"seed": 1, "ports": {"api": 4711, "bus": 4712}}'

It listens on one port for each link, and says so with a line. Each line of its input is a command:

    {"link": NAME, "target": [PORT, …]}  where new connections go, to one after the other; past those that take none.
                                         Without one connections are refused, as by a machine where nobody listens
    {"link": NAME, "weather": {…}}       what happens to them from now on: see WEATHER
    {"link": NAME, "cut": true}          every open connection ends
    {"counts": true}                     answered by {fault: how often}

The proxy ends with its input."""
import asyncio
import collections
import json
import random
import socket
import struct
import subprocess
import sys

# Chances are per piece of data that passes.
WEATHER = {
    "delay_ms": 0,      # each piece waits up to so long
    "dribble": 0.0,     # chance that a piece passes byte by byte
    "cut_out": 0.0,     # chance of an end in the middle of a request
    "cut_in": 0.0,      # chance of an end in the middle of an answer
    "lose_in": 0.0,     # chance of an end in the place of an answer: the request has arrived
    "half_close": 0.0,  # chance that the sending side is closed after a request
    "held": False,      # nothing passes, and no connection ends, until the weather changes
}
HELD_S = 0.02  # between looks whether data may pass again
DRIBBLED = 64  # of a piece that dribbles, so many bytes pass one by one


class Proxy:
    """The process, for the tests."""

    def __init__(self, seed, ports):
        self.ports = ports
        self.process = subprocess.Popen([sys.executable, __file__, json.dumps({"seed": seed, "ports": self.ports})],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "listening\n"

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def target(self, link, *ports):
        self.tell(link=link, target=ports)

    def weather(self, link, **weather):
        self.tell(link=link, weather=weather)

    def cut(self, link):
        self.tell(link=link, cut=True)

    def counts(self):
        self.tell(counts=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Link:
    def __init__(self, port, rng, counts):
        self.port, self.rng, self.counts = port, rng, counts
        self.listener, self.targets, self.turn = None, [], 0
        self.weather, self.open = dict(WEATHER), set()

    def happens(self, fault):
        return self.rng.random() < self.weather[fault]

    def noted(self, fault):
        self.counts[fault] += 1

    async def listen(self):
        self.listener = await asyncio.start_server(self.accept, "127.0.0.1", self.port, backlog=256)

    async def aim(self, targets):
        self.targets = targets
        if not targets and self.listener is not None:
            self.listener.close()
            self.listener = None
        elif targets and self.listener is None:
            await self.listen()

    async def connect(self):
        """(reader, writer) of the next target that takes the connection; None when none does."""
        for _ in range(len(self.targets)):
            self.turn += 1
            try:
                return await asyncio.open_connection("127.0.0.1", self.targets[self.turn % len(self.targets)])
            except OSError:
                continue
        return None

    async def wait_while_held(self):
        while self.weather["held"]:
            await asyncio.sleep(HELD_S)

    async def accept(self, near_reader, near_writer):
        await self.wait_while_held()
        far = await self.connect()
        if far is None:
            self.end(near_writer)
            self.noted("refused")
            return
        far_reader, far_writer = far
        pair = (near_writer, far_writer)
        self.open.add(pair)
        try:
            await asyncio.gather(self.pump(near_reader, far_writer, pair, True), self.pump(far_reader, near_writer, pair, False))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open.discard(pair)
            for writer in pair:
                writer.close()

    async def pump(self, reader, writer, pair, outward):
        while data := await reader.read(1 << 16):
            await self.wait_while_held()
            if self.weather["delay_ms"]:
                await asyncio.sleep(self.rng.uniform(0, self.weather["delay_ms"]) / 1000)
            if not outward and self.happens("lose_in"):
                self.noted("lose_in")
                return self.cut(pair)
            fault = "cut_out" if outward else "cut_in"
            if self.happens(fault):
                self.noted(fault)
                writer.write(data[:self.rng.randrange(len(data))])
                await writer.drain()
                return self.cut(pair)
            await self.forward(writer, data)
            if outward and self.happens("half_close"):
                self.noted("half_close")
                writer.write_eof()
                return None
        if not outward or not writer.can_write_eof():
            return self.cut(pair)
        writer.write_eof()
        return None

    async def forward(self, writer, data):
        if self.happens("dribble"):
            self.noted("dribble")
            for i in range(min(DRIBBLED, len(data))):
                writer.write(data[i:i + 1])
                await writer.drain()
                await asyncio.sleep(0.001)
            data = data[DRIBBLED:]
        writer.write(data)
        await writer.drain()

    def cut(self, pair):
        for writer in pair:
            self.end(writer)

    def end(self, writer):
        """With FIN or with RST."""
        sock = writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0 and self.rng.random() < 0.5:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        else:
            writer.close()


async def obey(links, counts, command):
    if "counts" in command:
        print(json.dumps(counts), flush=True)
        return
    link = links[command["link"]]
    if "target" in command:
        await link.aim(command["target"])
    if "weather" in command:
        link.weather = {**WEATHER, **command["weather"]}
    if "cut" in command:
        link.noted("cut_all")
        for pair in list(link.open):
            link.cut(pair)


async def main():
    args = json.loads(sys.argv[1])
    counts, loop = collections.Counter(), asyncio.get_running_loop()
    links = {name: Link(port, random.Random(f"{args['seed']}-{name}"), counts) for name, port in args["ports"].items()}
    for link in links.values():
        await link.listen()
    print("listening", flush=True)
    stdin = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    while line := await stdin.readline():
        await obey(links, counts, json.loads(line))


if __name__ == "__main__":
    asyncio.run(main())
