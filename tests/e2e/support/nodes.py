"""Several servers that share one PostgreSQL store, each with its share of the shards."""
import contextlib
import subprocess
import urllib.parse
import uuid

import stores
from harness import PAWL, Client, Server, wait_until


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def make_cluster(postgres, shards):
    """The URL of a store with so many shards."""
    store = f"{postgres.url}&schema=e{uuid.uuid4().hex[:20]}"
    subprocess.run([PAWL, "cluster", "init", "--shards", str(shards), "--store", store], check=True, capture_output=True)
    return store


@contextlib.contextmanager
def nodes(postgres, tmp_path, *flags, count=2, kind=Server, **options):
    """Servers with one store, each with its share of the shards."""
    store = make_cluster(postgres, 8)
    with contextlib.ExitStack() as stack:
        servers = []
        for i in range(count):
            folder = tmp_path / f"n{i}"
            folder.mkdir()
            s = kind(folder, "--node", f"n{i}", *flags, store=store, **options)
            stack.callback(s.close)
            s.start()
            servers.append(s)
        wait_until(lambda: all(is_settled(s, count) for s in servers), "every node has its share, and all know", 90)
        yield servers


def each_node(client):
    """Clients of every node behind the address of this one; of the one that answers if this client may not know them."""
    r = client.get("/api/v1/cluster") if stores.SEVERAL_NODES else None
    if r is None or r.status != 200:
        return [client]
    return [Client(urllib.parse.urlsplit(node["url"]).port, client.headers, client.timeout) for node in r.json["nodes"]]


def owners(server):
    return [shard["owner"] if shard["state"] == "serving" else None for shard in server.client().get("/readyz").json["shards"]]


def is_settled(server, count):
    """Every node has its share: no shard will move."""
    have = owners(server)
    shares = [have.count(owner) for owner in set(have)]
    return None not in have and len(shares) == count and max(shares) - min(shares) <= 1


def forwarded(server, headers=None):
    """How many requests a node has sent to others."""
    text = server.client().get("/metrics", headers=headers or {}).raw.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("pawl_forwarded_requests_total{"))


def requests_waiting(servers):
    """How many wait at the shards of these servers for a job, a run or an update."""
    texts = [s.client().get("/metrics").raw.decode() for s in servers]
    return sum(float(line.split()[-1]) for text in texts for line in text.splitlines() if line.startswith("pawl_requests_waiting "))


def tenants_of_both(servers, count=8, **settings):
    """At least so many tenants, half of them of each node: the first one forwards what belongs to the second."""
    api, names = servers[0].client(), {False: [], True: []}
    while min(len(found) for found in names.values()) < count // 2:
        before = forwarded(servers[0])
        name = api.tenant(**settings)
        names[forwarded(servers[0]) > before].append(name)
        assert len(names[False]) + len(names[True]) < 100 * count, "all tenants are at one node"
    return names[False] + names[True]
