"""The checks of the chaos round can fail: a quiet round breaks no promise, and each promise that is broken in a copy of what it
left behind is reported by its own check."""
import gc
import multiprocessing

import pytest

import ledger as ledgers
import observe
import scene
import verdict
from harness import wait_until
from ledger import Op
from chaos_round import Round
from world import world


@pytest.fixture(scope="module")
def quiet_round(fault_library, tmp_path_factory):
    """(book, seen) of a round without faults that has some of everything."""
    ledger = ledgers.Ledger(tmp_path_factory.mktemp("quiet") / "ledger")
    with world(fault_library, ledger, "quiet") as w:
        r = Round(w, ledger, "quiet")
        r.begin()
        wait_until(lambda: r.check() or has_everything(ledger), "the load has done some of everything", 600)
        r.settle()
        r.end()
        left = ledgers.Book(ledger.path), observe.see(w.client(timeout=600), w)
    gc.freeze()  # a collection in a child would copy all of it
    yield left
    gc.unfreeze()


def has_everything(ledger):
    succeeded = {kind for kind, count in ledger.done.items() if count}
    return succeeded | {"reused key"} >= set(verdict.CODES) - {"retry", "retry letter", "drop letter"} and ledger.done["called"] >= 5 and ledger.done["start"] > 150


def in_a_copy(work):
    """What `work` returns in a child process, which has a copy of everything that is here."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: theirs.send(work()))
    child.start()
    theirs.close()
    with ours:
        answer = ours.recv()  # none: the child says why on stderr
    child.join()
    return answer


def first(items, is_wanted=bool):
    return next(item for item in items if is_wanted(item))


def answered(book, *kinds, **body):
    """The first operation with such an answer."""
    return first(book.of(*kinds), lambda op: op.status == 200 and all(op.body.get(name) == value for name, value in body.items()))


def add_op(book, like, body=None, status=200):
    """The same request once more, with another answer."""
    op = Op(max(book.ops) + 1, like.kind, like.request, like.facts)
    op.answers.append((status, {**like.body, **(body or {})}, False))
    book.ops[op.number] = op
    return op


def on_bus(seen, event_type, tenant="acme"):
    return first(seen.bus, lambda message: message[0] == tenant and message[2]["type"] == event_type)


def publish_again(seen, message, **data):
    """The event as another one, the next of its run."""
    tenant, _, event = message
    seq = max(e["data"]["seq"] for _, _, e in seen.bus if e["source"] == event["source"]) + 1
    new = {**event, "id": f"{event['subject']}:{seq}", "data": {**event["data"], "seq": seq, **data}}
    seen.bus.append((tenant, new["id"], new))


def runs_of(seen, tenant="acme", **members):
    return [run for run in seen.runs[tenant].values() if all(run[name] == value for name, value in members.items())]


# --- what is broken, and the check that must say so ---

def a_run_is_lost(book, seen):
    op = first(book.of("start"), lambda op: op.status == 200 and op.tenant == "acme")
    del seen.runs["acme"][op.body["run_id"]]


def a_key_has_two_runs(book, seen):
    add_op(book, answered(book, "start"), {"run_id": "another"})


def a_run_is_created_twice(book, seen):
    add_op(book, answered(book, "start", created=True))


def two_keys_share_a_run(book, seen):
    op = add_op(book, answered(book, "start", created=True))
    op.request = {**op.request, "key": "another"}


def a_key_is_forgotten(book, seen):
    op = first(book.of("start"), lambda op: op.status == 200 and "life" not in op.facts)
    del seen.keys[op.tenant, op.key]


def a_refused_start_leaves_a_key(book, seen):
    op = add_op(book, answered(book, "start"), {"code": "MAX_CONCURRENT_RUNS", "run_id": None, "created": None}, 429)
    op.request = {**op.request, "key": "refused"}
    seen.keys[op.tenant, "refused"] = "some run"


def a_run_comes_from_nowhere(book, seen):
    tenant, _, event = on_bus(seen, "run.created")
    seen.bus.append((tenant, "nowhere:1", {**event, "id": "nowhere:1", "subject": "nowhere", "source": "nowhere"}))


def another_request_gets_the_run(book, seen):
    op = book.of("reused key")[0]
    op.answers = [(200, {"run_id": "of another"}, True)]


def two_results_are_accepted(book, seen):
    op = add_op(book, first(book.of("complete"), lambda op: op.body.get("status") == "completed" and op.facts["nonce"]))
    op.facts = {**op.facts, "nonce": "another"}


def an_accepted_result_is_lost(book, seen):
    job = first(book.of("complete"), lambda op: op.body.get("status") == "completed" and op.facts["nonce"]).facts["job"]
    seen.bus = [m for m in seen.bus if not (m[2]["type"] == "job.succeeded" and m[2]["data"]["job_id"] == job)]


def a_job_succeeds_twice(book, seen):
    publish_again(seen, on_bus(seen, "job.succeeded"))


def a_run_has_a_result_of_nobody(book, seen):
    run = first(runs_of(seen, status="succeeded", workflow_id="order"))
    run["steps"][0]["output"]["nonce"] = "of nobody"


def a_lost_lease_writes(book, seen):
    run = first(runs_of(seen, status="succeeded", workflow_id="order"))
    job, nonce = run["steps"][0]["output"]["job"], "too late"
    book.notes["handled"].append({"job": job, "nonce": nonce})
    for op in book.of("complete", "batch"):
        if op.facts.get("job") == job:
            op.facts["nonce"] = nonce
            op.answers = [(409, {"code": "LEASE_LOST"}, False)]
        for i, other in enumerate(op.facts.get("jobs", ())):
            if other == job and op.answers:
                op.facts["nonces"][i], op.body["results"][i]["code"] = nonce, "LEASE_LOST"
    run["steps"][0]["output"]["nonce"] = nonce


def a_failure_counts_twice(book, seen):
    nonce = answered(book, "fail").facts["nonce"]
    publish_again(seen, first(seen.bus, lambda m: (m[2]["data"].get("error") or {}).get("message") == nonce))


def a_lease_is_handed_out_twice(book, seen):
    add_op(book, first(book.of("claim"), lambda op: op.body.get("jobs")))


def a_call_has_the_answer_to_another(book, seen):
    run = first(runs_of(seen, status="succeeded", workflow_id="order"))
    run["steps"][1]["output"]["body"]["number"] += 1


def the_opposite_is_decided_too(book, seen):
    add_op(book, answered(book, "approve", status="approved"), {"status": "rejected"})


def two_people_decide(book, seen):
    op = add_op(book, answered(book, "approve", status="approved"))
    op.request = {**op.request, "key": None}


def a_decision_is_lost(book, seen):
    seen.approvals[answered(book, "approve", status="approved").facts["job"]]["status"] = "pending"


def a_signal_is_applied_twice(book, seen):
    run = first(op for op in book.of("signal") if op.status == 200).facts["run"]
    publish_again(seen, first(seen.bus, lambda m: m[2]["type"] == "signal.received" and m[2]["subject"] == run))


def a_run_adds_up_wrong(book, seen):
    first(runs_of(seen, status="succeeded", workflow_id="waits"))["output"] += 1


def an_entity_loses_a_signal(book, seen):
    entity = first(seen.entities.values(), lambda e: e["state"] and e["state"]["count"] > 1)
    entity["state"]["count"] -= 1


def an_entity_numbers_a_signal_twice(book, seen):
    op = answered(book, "entity signal")
    add_op(book, op, {"seq": op.body["seq"] + 1})


def an_update_has_two_results(book, seen):
    add_op(book, answered(book, "update", status="completed"), {"result": "another"})


def an_event_has_two_ids(book, seen):
    tenant, _, event = first(seen.bus, lambda m: "/runs/" in m[2]["source"])  # an entity is known by its events' ids
    seen.bus.append((tenant, "another:1", {**event, "id": "another:1"}))


def an_id_has_two_events(book, seen):
    tenant, message, event = seen.bus[10]
    seen.bus.append((tenant, message, {**event, "type": "run.another"}))


def an_event_is_missing_on_the_bus(book, seen):
    seen.bus.remove(first(seen.bus, lambda m: m[2]["data"]["seq"] == 2))


def events_arrive_out_of_order(book, seen):
    at = seen.bus.index(first(seen.bus, lambda m: m[2]["data"]["seq"] == 2))
    seen.bus.append(seen.bus.pop(at))


def the_last_event_is_not_published(book, seen):
    run = first(seen.timelines, lambda run: seen.timelines[run])
    seen.bus = [m for m in seen.bus if (m[2]["subject"], m[2]["data"]["seq"]) != (run, len(seen.timelines[run]))]


def a_timeline_has_a_gap(book, seen):
    del first(seen.timelines.values(), lambda events: len(events) > 2)[1]


def the_webhook_misses_an_event(book, seen):
    lost = seen.delivered[3][0]
    seen.delivered = [m for m in seen.delivered if m[0] != lost]


def a_stream_repeats_an_event(book, seen):
    notes = [note for note in book.notes["streamed"] if note["stream"] == "tenant acme"]
    book.notes["streamed"].insert(book.notes["streamed"].index(notes[5]), notes[5])


def a_stream_leaves_an_event_out(book, seen):
    book.notes["streamed"].remove(first(book.notes["streamed"], lambda note: note["stream"] == "tenant acme"))


def a_limit_is_exceeded(book, seen):
    """Every run of tight takes its slots, and few free them before all have."""
    feed = seen.feeds["tight"]
    ends = [m for m in feed if m[1]["type"] in ("run.succeeded", "run.cancelled", "run.failed", "run.denied", "run.timed_out")]
    seen.feeds["tight"] = [m for m in feed if m not in ends] + ends


def a_slot_leaks(book, seen):
    feed, runs = seen.feeds["tight"], seen.runs["tight"]
    feed.remove(first(feed, lambda m: m[1]["type"] == "run.succeeded" and runs[m[1]["subject"]]["workflow_id"] != scene.CHILD))


def a_key_limit_is_exceeded(book, seen):
    limited = {run["id"] for run in runs_of(seen, workflow_id="limited")}
    seen.feeds["acme"] = [m for m in seen.feeds["acme"] if not (m[1]["type"] in ("run.succeeded", "run.cancelled", "run.failed") and m[1]["subject"] in limited)]


def settings_are_lost(book, seen):
    seen.tenants["tight"]["max_concurrent_runs"] += 1


def settings_have_another_limit(book, seen):
    op = answered(book, "settings")
    first(seen.settings, lambda s: s["version"] == op.body["settings_version"])["settings"]["max_concurrent_runs"] += 1


def a_webhook_is_there_twice(book, seen):
    seen.hooks["brief"].append(first(seen.hooks["brief"]))


def an_api_key_is_there_twice(book, seen):
    seen.api_keys.append(first(seen.api_keys))


def a_revoked_key_works_again(book, seen):
    first(seen.api_keys, lambda key: key["revoked_at"])["revoked_at"] = None


def the_doctor_found_something_meanwhile(book, seen):
    book.notes["doctor"].append({"name": "slots", "ok": False})


def a_run_never_ends(book, seen):
    runs_of(seen)[0]["finished_at"] = None


def a_counter_is_not_zero(book, seen):
    seen.tenants["acme"]["active_runs"] = 1


def the_doctor_finds_something(book, seen):
    seen.checks[0]["ok"] = False


def a_request_is_never_answered(book, seen):
    answered(book, "start").answers = []


def a_server_has_a_fault(book, seen):
    answered(book, "bulk").answers = [(500, {"code": "INTERNAL"}, False)]


BROKEN = {
    verdict.no_run_is_lost: (a_run_is_lost,),
    verdict.one_run_per_key: (a_key_has_two_runs, a_run_is_created_twice, two_keys_share_a_run),
    verdict.keys_are_kept: (a_key_is_forgotten, a_refused_start_leaves_a_key),
    verdict.no_run_comes_from_nowhere: (a_run_comes_from_nowhere,),
    verdict.reused_keys_are_refused: (another_request_gets_the_run,),
    verdict.settings_are_kept: (settings_are_lost, settings_have_another_limit),
    verdict.webhooks_are_kept: (a_webhook_is_there_twice,),
    verdict.api_keys_are_kept: (an_api_key_is_there_twice, a_revoked_key_works_again),
    verdict.all_is_over: (a_run_never_ends, a_counter_is_not_zero, the_doctor_finds_something, the_doctor_found_something_meanwhile),
    verdict.answers: (a_request_is_never_answered, a_server_has_a_fault),
    verdict.verdict_results.results_count_once: (two_results_are_accepted, an_accepted_result_is_lost, a_job_succeeds_twice,
                                                 a_run_has_a_result_of_nobody, a_lost_lease_writes),
    verdict.verdict_results.failures_count_once: (a_failure_counts_twice,),
    verdict.verdict_results.leases_are_handed_out_once: (a_lease_is_handed_out_twice,),
    verdict.verdict_results.calls_are_made_once: (a_call_has_the_answer_to_another,),
    verdict.verdict_results.decisions_are_made_once: (the_opposite_is_decided_too, two_people_decide, a_decision_is_lost),
    verdict.verdict_results.signals_to_runs_count_once: (a_signal_is_applied_twice, a_run_adds_up_wrong),
    verdict.verdict_results.signals_to_entities_count_once: (an_entity_loses_a_signal, an_entity_numbers_a_signal_twice),
    verdict.verdict_results.updates_are_decided_once: (an_update_has_two_results,),
    verdict.verdict_events.one_id_per_event: (an_event_has_two_ids, an_id_has_two_events),
    verdict.verdict_events.bus_has_every_event_in_order: (an_event_is_missing_on_the_bus, events_arrive_out_of_order),
    verdict.verdict_events.timelines_are_published: (the_last_event_is_not_published, a_timeline_has_a_gap),
    verdict.verdict_events.webhook_gets_every_event: (the_webhook_misses_an_event,),
    verdict.verdict_events.streams_have_each_event_once: (a_stream_repeats_an_event, a_stream_leaves_an_event_out),
    verdict.verdict_limits.tenant_limit_is_kept: (a_limit_is_exceeded, a_slot_leaks),
    verdict.verdict_limits.workflow_limits_are_kept: (a_key_limit_is_exceeded,),
}


def test_a_quiet_round_breaks_no_promise(quiet_round):
    broken = verdict.broken_promises(*quiet_round)
    assert not broken, verdict.told(broken)


def test_every_check_has_a_way_to_fail():
    assert set(BROKEN) == {verdict.answers, *verdict.CHECKS}


@pytest.mark.parametrize("check, break_it", [(check, way) for check, ways in BROKEN.items() for way in ways], ids=lambda fn: fn.__name__)
def test_a_broken_promise_is_reported(quiet_round, check, break_it):
    def reported():
        break_it(*quiet_round)
        return list(check(*quiet_round))

    assert in_a_copy(reported)


def test_a_refusal_that_is_no_answer_is_reported(quiet_round):
    assert verdict.broken_promises(*quiet_round, {"500 INTERNAL": 1}) == ["answers: 1 requests were refused with 500 INTERNAL"]
