"""Results, decisions and signals: each counts once, and what was acknowledged counts."""
import collections

import entity_clients
import scene

DONE = {"completed", "already_completed"}
FAILED = {"failed", "already_failed", "retrying"}
DECISIONS = {"approved": "approved", "already_approved": "approved", "rejected": "rejected", "already_rejected": "rejected"}


def reports(book):
    """(op, job, nonce, status or code) of every answered result of a step, single or in a batch."""
    for op in book.of("complete", "fail"):
        if op.answers and op.facts["nonce"]:
            yield op, op.facts["job"], op.facts["nonce"], op.body.get("code") or op.body.get("status")
    for op in book.of("batch"):
        for result, job, nonce in zip(op.body.get("results", ()), op.facts["jobs"], op.facts["nonces"]):
            if nonce:
                yield op, job, nonce, result["code"] or result["status"]


def events_of(seen, *types):
    """Of each event one, however often it was published."""
    return {message: event for _, message, event in seen.bus if event["type"] in types}.values()


def outputs(value):
    """Every {"job", "nonce"} somewhere in a value: (job, nonce)."""
    if isinstance(value, dict):
        if set(value) == {"job", "nonce"}:
            yield value["job"], value["nonce"]
        else:
            for member in value.values():
                yield from outputs(member)
    elif isinstance(value, list):
        for member in value:
            yield from outputs(member)


def results_count_once(book, seen):
    accepted, refused = collections.defaultdict(set), collections.defaultdict(set)
    for op, job, nonce, status in reports(book):
        if status in DONE:
            accepted[job].add(nonce)
        elif status == "LEASE_LOST" and op.kind != "fail":
            refused[job].add(nonce)
    succeeded = collections.Counter(event["data"]["job_id"] for event in events_of(seen, "job.succeeded"))
    for job, nonces in accepted.items():
        if len(nonces) > 1:
            yield f"job {job} has the accepted results {sorted(nonces)}"
        if succeeded[job] != 1:
            yield f"job {job} was completed, and has succeeded {succeeded[job]} times"
    for job, count in succeeded.items():
        if count > 1:
            yield f"job {job} has succeeded {count} times"
    handled = {(note["job"], note["nonce"]) for note in book.notes["handled"]}
    for run in (run for runs in seen.runs.values() for run in runs.values()):
        for job, nonce in outputs([step["output"] for step in run["steps"]]):
            if (job, nonce) not in handled:
                yield f"run {run['id']} has a result of job {job} that no handler made"
            elif accepted[job] - {nonce}:
                yield f"run {run['id']} has the result {nonce} of job {job}, acknowledged was {accepted[job]}"
            elif nonce in refused[job] - accepted[job]:
                yield f"run {run['id']} has the result {nonce} of job {job}, whose lease was lost"


def failures_count_once(book, seen):
    kept = collections.Counter(event["data"]["error"].get("message") for event in events_of(seen, "job.retry_scheduled", "job.failed", "entity.call_failed")
                               if isinstance(event["data"].get("error"), dict))
    for op, job, nonce, status in reports(book):
        if status in FAILED and kept[nonce] != 1:
            yield f"{op}: the failure {nonce} of job {job} was acknowledged as {status}, and counts {kept[nonce]} times"


def leases_are_handed_out_once(book, seen):
    holder = {}
    for op in book.of("claim", "batch"):
        for job in op.body.get("jobs", ()):
            if holder.setdefault(job["lease_token"], op.number) != op.number:
                yield f"the lease {job['lease_token']} of job {job['job_id']} was handed out by ops {holder[job['lease_token']]} and {op.number}"


def calls_are_made_once(book, seen):
    """The receiver acted once for each job, and the run has the answer to that."""
    numbers = {note["job"]: note["number"] for note in book.notes["called"]}
    for run in (run for runs in seen.runs.values() for run in runs.values()):
        for step in run["steps"]:
            if step["type"] == "http" and step["status"] == "succeeded" and step.get("job_id") and step["output"]["body"]["number"] != numbers.get(step["job_id"]):
                yield f"run {run['id']} has the answer {step['output']['body']} to a call that is number {numbers.get(step['job_id'])}"


# --- decisions ---

def decisions_are_made_once(book, seen):
    decided, fresh = collections.defaultdict(set), collections.defaultdict(set)
    for op in book.of("approve", "reject"):
        for status, body, replayed in op.answers:
            if status == 200 and body["status"] in DECISIONS:  # otherwise a vote, and more are needed
                decided[op.facts["job"]].add(DECISIONS[body["status"]])
                if not body["status"].startswith("already"):
                    fresh[op.facts["job"]].add(op.key or op.number)
            elif body.get("code") == "APPROVAL_CONFLICT":
                decided[op.facts["job"]].add(body["decision"])
    events = collections.Counter(event["data"]["job_id"] for event in events_of(seen, "approval.decided"))
    for job, decisions in decided.items():
        approval = seen.approvals.get(job)
        if len(decisions) > 1:
            yield f"approval {job} was decided as {sorted(decisions)}"
        if len(fresh[job]) > 1:
            yield f"approval {job} was decided by {sorted(map(str, fresh[job]))}"
        if events[job] != 1:
            yield f"approval {job} has {events[job]} decisions in its timeline"
        if approval and approval["status"] not in decisions:
            yield f"approval {job} was acknowledged as {sorted(decisions)}, and is {approval['status']}"


# --- signals ---

def signals_to_runs_count_once(book, seen):
    sent = collections.defaultdict(dict)
    for op in book.of("signal"):
        if op.status == 200:
            known = sent[op.facts["run"]].setdefault(op.request["body"]["dedup_key"], {"seqs": set(), "new": 0, "payload": op.request["body"]["payload"]})
            known["seqs"].add(op.body["seq"])
            known["new"] += not op.body["duplicate"]
    received = collections.Counter(event["subject"] for event in events_of(seen, "signal.received"))
    for run, signals in sent.items():
        for key, known in signals.items():
            if len(known["seqs"]) > 1 or known["new"] > 1:
                yield f"signal {key} of run {run} was taken as {known}"
        if received[run] != len(signals):
            yield f"run {run} was sent {len(signals)} signals, and received {received[run]}"
        shown = next((runs[run] for runs in seen.runs.values() if run in runs), None)
        if shown and shown["status"] == "succeeded" and shown["output"] != sum(known["payload"] for known in signals.values()):
            yield f"run {run} has the sum {shown['output']} of the signals {signals}"


def signals_to_entities_count_once(book, seen):
    sent = collections.defaultdict(dict)  # (tenant, type, id) → {n: (seq, points)}
    for op in book.of("entity signal", "update", "mark"):
        if op.status not in (200, 202):
            continue
        entity = (op.tenant, scene.MARK if op.kind == "mark" else scene.COUNTER, op.facts["entity"])
        known = sent[entity].setdefault(op.facts["n"], (op.body["seq"], op.facts["points"]))
        if known[0] != op.body["seq"]:
            yield f"signal {op.facts['n']} of {entity} has the numbers {known[0]} and {op.body['seq']}"
    for entity, signals in sent.items():
        state = entity_clients.new_state()
        for seq, n, points in sorted((seq, n, points) for n, (seq, points) in signals.items()):
            state = entity_clients.apply(state, seq, {"n": n, "points": points})
        if seen.entities[entity]["state"] != state:
            yield f"{entity} has the state {seen.entities[entity]['state']}, its signals make {state}"
    for gap in book.notes["gap"]:
        yield f"a handler was given a signal out of order: {gap}"


def updates_are_decided_once(book, seen):
    results = collections.defaultdict(set)
    for op in book.of("update"):
        for _, body, _ in op.answers:
            if body.get("status") == "completed":
                results[op.tenant, op.facts["n"]].add(str(body["result"]))
    for update, found in results.items():
        if len(found) > 1:
            yield f"update {update} has the results {sorted(found)}"


CHECKS = (results_count_once, failures_count_once, leases_are_handed_out_once, calls_are_made_once, decisions_are_made_once, signals_to_runs_count_once,
          signals_to_entities_count_once, updates_are_decided_once)
