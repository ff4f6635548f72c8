"""Events: each is published under one id, on the bus, to the webhook and on the streams, in the order of its run or entity."""
import collections


def subject(event):
    """The run or the entity, which has another id when it was deleted and came again under its name."""
    return event["id"].rpartition(":")[0] if "/entities/" in event["source"] else event["subject"]


def place(event):
    """What an event is about, and its number there."""
    return subject(event), event["data"]["seq"]


def one_id_per_event(book, seen):
    """Wherever an event is seen it has the same id, and the id the same event."""
    event_of, id_of = {}, {}
    everywhere = [(message, event, "the bus") for _, message, event in seen.bus] + [(message, event, "the webhook") for message, event in seen.delivered]
    everywhere += [(event["id"], event, "a stream") for feed in seen.feeds.values() for _, event in feed]
    for message, event, where in everywhere:
        if message != event["id"]:
            yield f"{where} has event {event['id']} under the id {message}"
        if id_of.setdefault(place(event), message) != message:
            yield f"{where} has event {place(event)} under the ids {id_of[place(event)]} and {message}"
        if event_of.setdefault(message, event) != event:
            yield f"{where} has another event under the id {message}: {event}, known was {event_of[message]}"


def numbers_on_bus(seen):
    """{run or entity: numbers of its events in the order of their first arrival}"""
    found = collections.defaultdict(dict)
    for _, _, event in seen.bus:
        found[subject(event)].setdefault(event["data"]["seq"])
    return {of: list(numbers) for of, numbers in found.items()}


def bus_has_every_event_in_order(book, seen):
    for of, numbers in numbers_on_bus(seen).items():
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"the bus has the events {numbers} of {of}"


def timelines_are_published(book, seen):
    published = {(event["subject"], event["data"]["seq"]): event for _, _, event in seen.bus}
    for run, timeline in seen.timelines.items():
        for event in timeline:
            found = published.get((run, event["seq"]))
            if found is None:
                yield f"event {event['seq']} ({event['type']}) of run {run} was never published"
            elif event["type"] != "event.emitted" and found["type"] != event["type"]:
                yield f"event {event['seq']} of run {run} is {event['type']}, and was published as {found['type']}"
        if [event["seq"] for event in timeline] != list(range(1, len(timeline) + 1)):
            yield f"the timeline of run {run} has the events {[event['seq'] for event in timeline]}"


def webhook_gets_every_event(book, seen):
    want, got = {message for tenant, message, _ in seen.bus if tenant == "acme"}, {message for message, _ in seen.delivered}
    for message in sorted(want - got):
        yield f"event {message} never reached the webhook"
    for message in sorted(got - want):
        yield f"event {message} reached the webhook, and not the bus"


# --- streams ---

def position(cursor):
    return tuple(map(int, cursor.split("-")))


def to_last_mark(notes, last):
    """What a follower read, to the last mark."""
    ids = [note["id"] for note in notes]
    return notes[:ids.index(last) + 1] if last in ids else notes


def streams_have_each_event_once(book, seen):
    read = collections.defaultdict(list)
    for note in book.notes["streamed"]:
        read[note["stream"]].append(note)
    for tenant, feed in seen.feeds.items():
        notes = to_last_mark(read[f"tenant {tenant}"], feed[-1][1]["id"])
        cursors = [position(note["cursor"]) for note in notes]
        if cursors != sorted(set(cursors)):
            yield f"the stream of {tenant} went back or repeated itself"
        missed = {event["id"] for _, event in feed} - {note["id"] for note in notes}
        if missed and tenant != "brief":  # retention takes events that a slow reader has not had yet
            yield f"the stream of {tenant} left out {len(missed)} events: {sorted(missed)[:5]}"
        strange = {note["id"] for note in notes} - {message for _, message, _ in seen.bus}
        if strange:
            yield f"the stream of {tenant} has events that were never published: {sorted(strange)[:5]}"
    for name, notes in read.items():
        if name.startswith("run") and [note["seq"] for note in notes] != list(range(1, len(notes) + 1)):
            yield f"the stream of {name} has the events {[note['seq'] for note in notes]}"
    for note in book.notes["reset"]:
        if "brief" not in note["stream"] and not note["stream"].startswith("run"):
            yield f"the stream of {note['stream']} was reset after {note['after']}"


CHECKS = (one_id_per_event, bus_has_every_event_in_order, timelines_are_published, webhook_gets_every_event, streams_have_each_event_once)
