"""What deploy/cluster says, read as its programs read it, and moved to ports of this machine so that a test can start exactly that."""
import contextlib
import os
import re
import shlex
import subprocess
import uuid

import yaml

import endpoint
from cli import free_port
from harness import PAWL, ROOT, ROOT_KEY, Client, wait_until
from nats import nats_server

CLUSTER = ROOT / "deploy" / "cluster"
NODES = ("node-1", "node-2", "node-3")
SHARDS = 6


def compose():
    return yaml.safe_load((CLUSTER / "compose.yml").read_text())


def unit_settings(text, name):
    """The values of a setting of a unit, in their order."""
    return re.findall(rf"^{name}=(.*)$", text, re.M)


def environment_file(text):
    """What systemd reads of an EnvironmentFile."""
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


def compose_node(name):
    """(command, environment) of a node's service."""
    service = compose()["services"][name]
    return ["pawl", *service["command"]], {"PAWL_ROOT_KEY": ROOT_KEY}


def unit_node(name):
    """(command, environment) of a node's unit. /etc/pawl has the files of deploy/cluster."""
    text = (CLUSTER / "pawl@.service").read_text().replace("%i", name)
    command = shlex.split(unit_settings(text, "ExecStart")[0])
    environment = dict(word.split("=", 1) for line in unit_settings(text, "Environment") for word in line.split())
    for file in unit_settings(text, "EnvironmentFile"):
        environment |= environment_file((CLUSTER / file.removeprefix("-").removeprefix("/etc/pawl/")).read_text())
    return ["pawl", *command[1:]], environment | {"PAWL_ROOT_KEY": ROOT_KEY}


class Deployment:
    """Three nodes behind HAProxy, each a process on this machine. Only hosts, ports and the database's URL differ from the files."""

    def __init__(self, postgres, nats, folder, node_of):
        self.folder, self.node_of = folder, node_of
        self.ports = {name: free_port() for name in (*NODES, "proxy")}
        self.metrics_ports = {name: free_port() for name in NODES}
        self.store = f"{postgres.url}&schema=e{uuid.uuid4().hex[:20]}"
        self.bus = nats.url
        self.processes = {}

    def here(self, name, text):
        """A text of a node's command, environment or of the proxy's configuration, for this machine."""
        text = re.sub(r"^postgres://.*", self.store, text)
        text = re.sub(r"^nats://.*", self.bus, text)
        if name in NODES:
            text = text.replace("0.0.0.0:7295", f"127.0.0.1:{self.ports[name]}").replace("0.0.0.0:7296", f"127.0.0.1:{self.metrics_ports[name]}")
        for node in NODES:
            text = re.sub(rf"\b{node}(\.internal)?:7295\b", f"127.0.0.1:{self.ports[node]}", text)
        return text

    def start(self, name):
        command, environment = self.node_of(name)
        command = [PAWL, *(self.here(name, word) for word in command[1:])]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
        environment = {**kept, **{k: self.here(name, v) for k, v in environment.items()}}
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment, cwd=self.folder, text=True)
        self.processes[name] = process
        line = process.stdout.readline()
        assert line.startswith("pawl listening on "), (line, self.log(name))
        endpoint.started(line.split()[-1])

    def start_proxy(self):
        config = self.folder / "haproxy.cfg"
        text = (CLUSTER / "haproxy.cfg").read_text().replace("bind :7295", f"bind 127.0.0.1:{self.ports['proxy']}")
        config.write_text(self.here("proxy", text))
        with open(self.folder / "proxy.log", "ab") as log:
            self.processes["proxy"] = subprocess.Popen(["haproxy", "-f", str(config)], stdout=log, stderr=log, cwd=self.folder)
        endpoint.started(f"http://127.0.0.1:{self.ports['proxy']}")

    def stop(self, name):
        """SIGTERM, and the exit code."""
        process = self.processes.pop(name)
        process.terminate()
        code = process.wait(timeout=90)
        if process.stdout is not None:
            process.stdout.close()
        return code

    def stop_all(self):
        for name in list(self.processes):
            self.stop(name)

    def client(self, name):
        return Client(self.ports[name], headers={"Authorization": f"Bearer {ROOT_KEY}"})

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def answering(self):
        """The nodes that the proxy's turns lead to."""
        replies = [Client(self.ports["proxy"]).get("/readyz") for _ in range(2 * len(NODES))]
        return {r.json["node"] for r in replies if r.status == 200}

    def shards(self, name):
        """Who serves each shard, as a node knows it; None: nobody does."""
        shards = self.client(name).get("/readyz").json["shards"]
        return [shard["owner"] if shard["state"] == "serving" else None for shard in shards]

    def settle(self, *names):
        """Waits until these nodes have the same number of shards each, and all of them know."""
        def even():
            views = [self.shards(name) for name in names]
            return all(v == views[0] for v in views) and {views[0].count(name) for name in names} == {SHARDS // len(names)}
        wait_until(even, f"{names} share the shards", 90)


@contextlib.contextmanager
def running(postgres, folder, node_of):
    with nats_server() as nats, contextlib.ExitStack() as stack:
        d = Deployment(postgres, nats, folder, node_of)
        subprocess.run([PAWL, "cluster", "init", "--shards", str(SHARDS), "--store", d.store], check=True, capture_output=True)
        stack.callback(d.stop_all)
        for name in NODES:
            d.start(name)
        d.start_proxy()
        wait_until(lambda: proxy_listens(d) and d.answering() == set(NODES), "the proxy reaches every node", 60)
        d.settle(*NODES)
        yield d


def proxy_listens(d):
    assert d.processes["proxy"].poll() is None, d.log("proxy")
    try:
        return Client(d.ports["proxy"]).get("/healthz").status == 200
    except OSError:
        return False
