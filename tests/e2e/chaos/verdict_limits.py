"""Limits: the admissions of a tenant, replayed in the order of their commits, never exceed a limit that may have been in force."""
import collections

import scene

ENDS = {"run.succeeded", "run.failed", "run.timed_out", "run.denied", "run.cancelled"}


def waits_first(feed):
    """Runs that were queued, or had to wait for their time, when they were created."""
    return {event["subject"] for _, event in feed if event["type"] in ("run.queued", "run.scheduled")}


def admissions(feed):
    """(event, run, +1 or -1) whenever a run takes or frees its slots. Children hold none."""
    waiting = waits_first(feed)
    children = {event["subject"] for _, event in feed if event["type"] == "run.created" and event["data"]["workflow_id"] == scene.CHILD}
    active = set()
    for _, event in feed:
        run = event["subject"]
        if run in children:
            continue
        if event["type"] in ("run.admitted", "run.retried") or (event["type"] == "run.created" and run not in waiting):
            active.add(run)
            yield event, run, 1
        elif event["type"] in ENDS and run in active:
            active.discard(run)
            yield event, run, -1


def tenant_limit_is_kept(book, seen):
    feed, limits, active = seen.feeds["tight"], {scene.FIRST_LIMIT}, 0
    changes = {event["id"]: (run, change) for event, run, change in admissions(feed)}
    for _, event in feed:
        if event["type"] == "entity.signaled" and event["data"]["entity_type"] == scene.MARK and "payload" in event["data"]:
            limit = event["data"]["payload"]["points"]
            limits = limits | {limit} if event["data"]["name"] == "before" else {limit} if event["data"]["name"] == "after" else limits
        run, change = changes.get(event["id"], (None, 0))
        active += change
        if change > 0 and active > max(limits):
            yield f"tight has {active} active runs with run {run} ({event['id']}), the limit is {sorted(limits)}"
    if active:
        yield f"tight has {active} runs that took a slot and never freed it"


def workflow_limits_are_kept(book, seen):
    for tenant in ("acme", "tight"):
        keys = {run["id"]: run["input"]["k"] for run in seen.runs[tenant].values() if run["workflow_id"] == "limited"}
        active = collections.Counter()
        for event, run, change in admissions(seen.feeds[tenant]):
            if run not in keys:
                continue
            for name, limit in (("workflow", scene.WORKFLOW_LIMIT), (f"key {keys[run]}", scene.KEY_LIMIT)):
                active[name] += change
                if change > 0 and active[name] > limit:
                    yield f"limited of {tenant} has {active[name]} active runs under its limit {limit} ({name}) with run {run} ({event['id']})"


CHECKS = (tenant_limit_is_kept, workflow_limits_are_kept)
