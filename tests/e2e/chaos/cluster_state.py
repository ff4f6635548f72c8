"""What a cluster is doing right now, for somebody who asks later why it was not served: the shards and nodes of the directory, the sessions and
locks of PostgreSQL, and each node's view, threads and log."""
import http.client
import os
import shutil
import signal
import subprocess

ANSWER_S = 3
STACKS_S = 60

QUERIES = {
    "shards": "SELECT shard, owner, epoch, wanted_by FROM pawl.shards ORDER BY shard",
    "nodes": "SELECT name, session, lease_until - now() AS lease, draining, stopping FROM pawl.nodes ORDER BY name",
    "replication": "SELECT application_name, state, sync_state, sent_lsn, flush_lsn, reply_time FROM pg_stat_replication",
    "sessions": """SELECT pid, client_port, state, now() - xact_start AS transaction, now() - state_change AS since, wait_event_type, wait_event,
                   pg_blocking_pids(pid) AS blocked_by, left(query, 120) AS query FROM pg_stat_activity
                   WHERE backend_type IN ('client backend', 'walsender', 'autovacuum worker') ORDER BY state, pid""",
    "locks": """SELECT pid, locktype, relation::regclass, transactionid, classid, objid, mode FROM pg_locks WHERE NOT granted""",
}


def titled(title, text):
    return f"--- {title}\n{text}"


def of_database(server):
    for name, sql in QUERIES.items():
        try:
            yield titled(name, "\n".join(map(str, server.rows(sql))))
        except Exception as e:  # noqa: BLE001 whatever is wrong with it is what we want to know
            yield titled(name, repr(e))


def view_of(node):
    try:
        return node.client(timeout=ANSWER_S).get("/readyz").raw.decode()
    except (OSError, http.client.HTTPException) as e:
        return repr(e)


def stacks_of(node):
    """The node stands still meanwhile."""
    if shutil.which("gdb") is None:
        return "there is no gdb"
    command = ["gdb", "-p", str(node.process.pid), "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "thread apply all bt 14"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=STACKS_S, check=False, stdin=subprocess.DEVNULL).stdout
    except subprocess.TimeoutExpired:
        os.kill(node.process.pid, signal.SIGCONT)
        return "gdb takes too long"
    return "\n".join(line for line in shown.splitlines() if line.startswith(("#", "Thread")))


def told(world, stacks):
    """As text. The stacks of threads cost the nodes a second or more."""
    parts = [titled("load", " ".join(map(str, os.getloadavg()))), *of_database(world.database.primary)]
    live = [node for node in world.nodes if node.process is not None and not node.paused]
    parts += [titled(f"view of {node.name}", view_of(node)) for node in live]
    if stacks:
        parts += [titled(f"threads of {node.name}", stacks_of(node)) for node in live]
    return "\n".join([*parts, world.log()])
