"""The ledger against what was seen: each check is a list of broken promises, in words. They share no code with the server."""
import collections

import scene
import verdict_events
import verdict_limits
import verdict_results

# What the same request was repeated after. Anything else that a server says it cannot do is a defect.
REFUSALS = {"503 STORE_FULL", "503 STORE_FAILED", "503 SHUTTING_DOWN", "503 STORE_BUSY", "409 IDEMPOTENCY_IN_FLIGHT"}
CLUSTER_REFUSALS = REFUSALS - {"503 STORE_FULL"} | {"503 SHARD_UNAVAILABLE"}
OVER = {"RUN_IS_OVER", "RUN_NOT_UNDER_WAY", "RUN_NOT_OVER", "RUN_NOT_RETRYABLE", "RUN_IS_A_CHILD", "RUN_BEING_REMOVED", "RUN_NOT_FOUND"}
LIMITED = {"MAX_CONCURRENT_RUNS", "QUEUE_FULL", "RATE_LIMITED"}
LEASES = {"LEASE_LOST", "JOB_NOT_FOUND"}
DECIDED = {"APPROVAL_CONFLICT", "NOT_AWAITING_APPROVAL", "APPROVAL_NOT_FOUND", "APPROVAL_EXPIRED"}
# What may be answered besides 200.
CODES = {
    "start": LIMITED, "reused key": {"IDEMPOTENCY_KEY_REUSED"}, "claim": set(), "batch": set(), "complete": LEASES, "fail": LEASES, "heartbeat": LEASES, "release": LEASES,
    "signal": {"RUN_IS_OVER", "RUN_NOT_FOUND"}, "entity signal": set(), "mark": set(), "update": set(), "approve": DECIDED, "reject": DECIDED,
    "pause": OVER, "resume": OVER, "cancel": OVER, "retry": OVER | LIMITED, "rerun": OVER | LIMITED, "bulk": set(), "release key": set(),
    "schedule": set(), "unschedule": {"SCHEDULE_NOT_FOUND"}, "trigger": {"SCHEDULE_NOT_FOUND"} | LIMITED, "webhook": set(), "rotate": set(), "delete webhook": set(),
    "fleeting signal": set(), "delete entity": {"ENTITY_NOT_FOUND"}, "api key": set(), "revoke": set(), "workflow": set(),
    "settings": set(), "rollback": set(), "retry letter": OVER | LIMITED | {"NOT_A_DEAD_LETTER", "JOB_NOT_FOUND"}, "drop letter": {"NOT_A_DEAD_LETTER", "JOB_NOT_FOUND"},
}


def answers(book, seen, refusals=(), allowed=REFUSALS):
    """Everybody was answered in the end, and nobody with what the contract does not have."""
    for op in book.in_doubt():
        if op.kind != "claim":
            yield f"{op} was never answered"
    for op in book.ops.values():
        for status, body, _ in op.answers:
            if status not in (200, 202) and body.get("code") not in CODES[op.kind]:
                yield f"{op} was answered with {status} {body.get('code')}"
    for why in set(refusals) - allowed:
        yield f"{refusals[why]} requests were refused with {why}"


# --- one key, one run ---

def run_of(op):
    return op.body.get("run_id") if op.status == 200 else None


def starts(book):
    """{(tenant, key, life): [op]}; a key that was released has another life."""
    found = collections.defaultdict(list)
    for op in book.of("start"):
        found[op.tenant, op.key, op.facts.get("life", 1)].append(op)
    return found


def one_run_per_key(book, seen):
    owner = {}
    for (tenant, key, life), ops in starts(book).items():
        runs = {run_of(op) for op in ops} - {None}
        if len(runs) > 1:
            yield f"key {key} of {tenant} has the runs {sorted(runs)}"
        if sum(op.body.get("created") is True for op in ops) > 1:
            yield f"key {key} of {tenant} created a run twice"
        for op in ops:
            if run_of(op) and not op.body.get("coalesced"):
                if owner.setdefault(run_of(op), (tenant, key, life)) != (tenant, key, life):
                    yield f"run {run_of(op)} belongs to the keys {owner[run_of(op)]} and {(tenant, key, life)}"


def keys_are_kept(book, seen):
    """The server remembers the run of each key, and no key of a start that was refused."""
    all_starts = starts(book)
    for (tenant, key, life), ops in all_starts.items():
        if (tenant, key, life + 1) in all_starts:
            continue
        told, kept = {run_of(op) for op in ops} - {None}, seen.keys.get((tenant, key))
        if told and kept not in told:
            yield f"key {key} of {tenant} was acknowledged with {sorted(told)}, the server has {kept}"
        if not told and kept is not None:
            yield f"key {key} of {tenant} was refused every time, but the server has {kept}"


def acknowledged_runs(book):
    """{run id: (tenant, op)} of every run that somebody was promised."""
    return {run_of(op): (op.tenant, op) for op in book.of("start", "rerun", "trigger") if run_of(op)}


def created_runs(seen):
    return {event["subject"] for _, _, event in seen.bus if event["type"] == "run.created"}


def ended_runs(seen):
    """Runs whose end was published."""
    return {event["subject"] for _, _, event in seen.bus if event["type"] in verdict_limits.ENDS}


def no_run_is_lost(book, seen):
    ended = ended_runs(seen)
    for run, (tenant, op) in acknowledged_runs(book).items():
        removed = tenant == "brief" and run in ended  # retention may have taken it
        if run not in seen.runs[tenant] and not removed:
            yield f"run {run} of {op} is lost"


def no_run_comes_from_nowhere(book, seen):
    """A start that was refused leaves nothing behind, and nothing is started twice under another name."""
    known = set(acknowledged_runs(book)) | {run for (_, key), run in seen.keys.items() if key.startswith(("schedule:", "entity:"))}
    for tenant, message, event in seen.bus:
        if event["type"] == "run.created" and event["data"]["workflow_id"] != scene.CHILD and event["subject"] not in known:
            yield f"nobody asked for run {event['subject']} ({event['data']['workflow_id']} of {tenant})"


def reused_keys_are_refused(book, seen):
    for op in book.of("reused key"):
        if op.status == 200:
            yield f"{op} got {op.body.get('run_id')}, which belongs to another request"


# --- settings and webhooks ---

def settings_are_kept(book, seen):
    kept = {version["version"]: version["settings"] for version in seen.settings}
    changes = [op for op in book.of("settings", "rollback") if op.status == 200]
    for op in changes:
        version = op.body["settings_version"]
        if version in kept and kept[version]["max_concurrent_runs"] != op.facts["limit"]:
            yield f"{op} set the limit {op.facts['limit']} as version {version}, the server has {kept[version]}"
    names = collections.Counter(op.request["body"]["name"] for op in changes if op.kind == "settings")
    for name in names:
        if sum(s["name"] == name for s in kept.values()) > 1 + sum(op.kind == "rollback" for op in changes):
            yield f"settings {name} are there more often than they were made"
    if changes and seen.tenants["tight"]["max_concurrent_runs"] != changes[-1].facts["limit"]:
        yield f"the last change of the settings is lost: {changes[-1]}"


def webhooks_are_kept(book, seen):
    deleted = {op.facts["hook"] for op in book.of("delete webhook") if op.status == 200}
    there = collections.Counter(hook["description"] for hook in seen.hooks["brief"])
    for op in book.of("webhook"):
        want = 0 if op.body.get("id") in deleted else 1
        if op.status == 200 and there[op.facts["description"]] != want:
            yield f"{op} should be there {want} times, and is {there[op.facts['description']]} times"


def api_keys_are_kept(book, seen):
    revoked = {op.facts["label"] for op in book.of("revoke") if op.status == 200}
    for op in book.of("api key"):
        there = [key for key in seen.api_keys if key["label"] == op.facts["label"]]
        if op.status == 200 and len(there) != 1:
            yield f"{op} should be there once, and is {len(there)} times"
        elif op.status == 200 and (there[0]["revoked_at"] is not None) != (op.facts["label"] in revoked):
            yield f"{op} should {'' if op.facts['label'] in revoked else 'not '}be revoked: {there[0]}"


# --- the end ---

def all_is_over(book, seen):
    for tenant, shown in seen.tenants.items():
        if shown["active_runs"] or shown["queued_runs"]:
            yield f"{tenant} has {shown['active_runs']} active and {shown['queued_runs']} queued runs when all is over"
        for run in seen.runs[tenant].values():
            if run["finished_at"] is None:
                yield f"run {run['id']} of {tenant} never ends: {run['status']}"
    for check in seen.checks:
        if not check["ok"]:
            yield f"the doctor finds {check}"
    for check in book.notes["doctor"]:
        yield f"the doctor found in the midst of it {check}"
    if not seen.audit["ok"]:
        yield f"the audit trail is broken: {seen.audit}"


CHECKS = (one_run_per_key, keys_are_kept, no_run_is_lost, no_run_comes_from_nowhere, reused_keys_are_refused, settings_are_kept, webhooks_are_kept, api_keys_are_kept, all_is_over,
          *verdict_results.CHECKS, *verdict_events.CHECKS, *verdict_limits.CHECKS)


def broken_promises(book, seen, refusals=(), allowed=REFUSALS):
    found = [f"answers: {what}" for what in answers(book, seen, refusals, allowed)]
    for check in CHECKS:
        found += [f"{check.__name__}: {what}" for what in check(book, seen)]
    return found


def told(broken, of_each=6):
    """Some of each kind: one fault may break a promise a thousand times."""
    kinds = collections.defaultdict(list)
    for what in broken:
        kinds[what.split(":")[0]].append(what)
    return "\n".join(what for found in kinds.values() for what in [*found[:of_each], *([f"… and {len(found) - of_each} more"] if len(found) > of_each else [])])
