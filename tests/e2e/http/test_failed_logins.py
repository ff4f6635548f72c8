"""Invalid API keys from one address: asked to wait, counted, logged at a bounded rate; valid keys go through."""
import re

import harness
from checks import assert_problem
from nodes import each_node
from prometheus import metrics

RUNS = "/api/v1/runs"


def metric(client, reason):
    text = metrics(client)
    return int(re.search(rf'^pawl_auth_failures_total{{reason="{reason}"}} (\d+)', text, re.M)[1])


def test_many_invalid_keys_are_throttled_while_valid_ones_go_through():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        root = s.client(headers={"X-API-Key": harness.ROOT_KEY})
        made = [root.post("/api/v1/keys", {"tenant": "t", "role": "viewer"}).json for _ in range(2)]
        valid, revoked = (s.client(headers={"X-API-Key": m["key"]}) for m in made)
        assert valid.get(RUNS).status == revoked.get(RUNS).status == 200
        guesser = s.client()

        def guess(n):
            return guesser.get(RUNS, headers={"X-API-Key": f"pawl_{n:010d}_{'0' * 40}"})

        n, last = 0, None
        while last is None or last.status == 401:
            last, n = guess(n), n + 1
            assert n < 100_000, "it is never throttled"
        assert_problem(last, 429, "TOO_MANY_FAILED_LOGINS", retryable=True)
        assert n > 50, "a few mistakes are no attack"
        assert valid.get(RUNS).status == 200 and root.get("/api/v1/tenants").status == 200
        # A change of keys makes the server look at all of them again: those that are valid still go through.
        root.delete(f"/api/v1/keys/{made[1]['id']}")
        while guess(n).status == 401:
            n += 1
        assert valid.get(RUNS).status == 200
        harness.wait_until(lambda: revoked.get(RUNS).status in (401, 429), "the node of this connection has heard of it")
        harness.wait_until(lambda: guess(n).status == 401, "the address may try again")
        assert metric(root, "throttled") >= 1 and metric(root, "invalid") >= 50
        nodes = each_node(root)
        assert all(node.get(RUNS, headers={"X-API-Key": "pawl_nobodys"}).status in (401, 429) for node in nodes)
        lines = [line for line in s.log().splitlines() if "API keys were refused" in line]
        assert len(nodes) <= len(lines) < 20 and "127.0.0.1" in lines[0] and "pawl_0" not in s.log()


def test_a_request_without_a_key_is_no_attempt():
    with harness.server(dev=False, env={"PAWL_ROOT_KEY": harness.ROOT_KEY}) as s:
        for _ in range(300):
            assert s.client().get(RUNS).status == 401
        assert_problem(s.client(headers={"X-API-Key": "pawl_nobodys"}).get(RUNS), 401, "UNAUTHENTICATED")
