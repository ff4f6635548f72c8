"""Servers that publish their events on a bus."""
import contextlib

import harness
from nodes import each_node

# Seven events a run, all in one commit.
AT_ONCE = [{"name": "a", "type": "transform", "output": 1}, {"name": "say", "type": "emit", "event": "order.placed", "payload": {"n": "${input.n}"}},
           {"name": "b", "type": "transform", "output": 2}]


def bus_of(api):
    """What the server says of its bus: of several nodes one that has something to say, and what waits at all."""
    said = [node.get("/readyz").json["dependencies"]["bus"] for node in each_node(api)]
    return {**next((bus for bus in said if bus["status"] != "ok"), said[0]), "waiting": sum(bus["waiting"] for bus in said)}


def waiting(api):
    return bus_of(api)["waiting"]


@contextlib.contextmanager
def publishing_server(bus, *flags):
    """A server that publishes on a bus, and a tenant with the workflow `now`."""
    with harness.server("--bus", bus, *flags) as server:
        api = server.client()
        tenant = api.tenant()
        api.workflow(tenant, "now", AT_ONCE)
        yield server, api, tenant
