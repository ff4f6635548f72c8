-- Long-lived entities: their types, their inboxes, their timers, and the windows in which a signal's key is known.
-- An entity has a number in one row with those of runs, so that jobs, timers, events and the feed are the same for both:
-- what is called `run` there is the number of whoever owns the row. An entity's job has the step -1.

-- Jobs of a queue are handed out by the age of their runs; but an entity is as old as it is, and its calls would always go
-- before those of younger ones. A call's place is the time when it was made, in the units of run numbers.
DROP INDEX jobs_claimable;
CREATE INDEX jobs_claimable
    ON jobs (queue, tenant, urgency, (CASE WHEN step < 0 THEN created_at * 4096 ELSE run END), run, ordinal)
    WHERE state = 'pending';

CREATE TABLE entity_types (
    num INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    id TEXT NOT NULL,
    latest_version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX entity_types_by_id ON entity_types (tenant, id);

-- An entity is handled as the version says that it is pinned to, until it is migrated.
CREATE TABLE entity_type_versions (
    type INTEGER NOT NULL,
    version INTEGER NOT NULL,
    queue TEXT NOT NULL,
    handler TEXT NOT NULL,
    dedup_window_ms INTEGER NOT NULL,
    dedup_max_keys INTEGER NOT NULL,
    rollover_events INTEGER NOT NULL,
    keep_generations INTEGER, -- null: all
    max_inbox INTEGER NOT NULL,
    max_batch INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL, -- 0: until it succeeds
    backoff_ms INTEGER NOT NULL,
    max_backoff_ms INTEGER NOT NULL,
    requeued TEXT, -- open calls go to another queue: those of entities up to this name have gone; null: nothing is to be done
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (type, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX entity_type_versions_requeueing ON entity_type_versions (type, version) WHERE requeued IS NOT NULL;

-- Small, because every signal changes it: the state is in a row of its own.
CREATE TABLE entities (
    num INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    tenant INTEGER NOT NULL,
    type INTEGER NOT NULL,
    name TEXT NOT NULL, -- what its users call it
    type_version INTEGER NOT NULL,
    version INTEGER NOT NULL, -- grows by one with every answer of its handler that counts
    generation INTEGER NOT NULL,
    last_seq INTEGER NOT NULL, -- of the signals that came
    consumed_seq INTEGER NOT NULL, -- of those that are applied: the rest waits
    given_seq INTEGER, -- of those that the call under way was given; null: none is, or it has not been handed out
    last_event INTEGER NOT NULL,
    rolled_event INTEGER NOT NULL, -- the last one of the generation before
    calls INTEGER NOT NULL, -- jobs made so far
    open_job INTEGER, -- the ordinal of the call under way
    timer_at INTEGER, -- when the earliest of its timers is due; armed in `timers` while no call is under way
    migrate_to INTEGER, -- a version that it was asked to go to
    created_at INTEGER NOT NULL,
    active_at INTEGER NOT NULL, -- when a signal or an answer last changed it
    finished_at INTEGER
) STRICT;
CREATE UNIQUE INDEX entities_by_name ON entities (type, name);
CREATE INDEX entities_by_version ON entities (type, type_version, name);

CREATE TABLE entity_states (
    entity INTEGER PRIMARY KEY,
    type_version INTEGER NOT NULL, -- whose handler wrote it
    state TEXT NOT NULL
) STRICT;

-- Signals and updates that wait, in the order of their numbers.
CREATE TABLE inbox (
    entity INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    payload TEXT NOT NULL,
    asks INTEGER NOT NULL, -- 1: an update, whose sender wants to know what came of it
    at INTEGER NOT NULL,
    PRIMARY KEY (entity, seq)
) STRICT, WITHOUT ROWID;

-- What came of updates, for as long as their keys are known.
CREATE TABLE entity_updates (
    entity INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    outcome TEXT, -- JSON, with a result or an error; null: none yet
    rejected INTEGER NOT NULL,
    at INTEGER NOT NULL,
    decided_at INTEGER,
    PRIMARY KEY (entity, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE entity_timers (
    entity INTEGER NOT NULL,
    name TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    payload TEXT,
    given INTEGER NOT NULL, -- 1: the call under way was told that it is due
    PRIMARY KEY (entity, name)
) STRICT, WITHOUT ROWID;

-- Runs that answers want to be started; they go once they are.
CREATE TABLE entity_starts (
    entity INTEGER NOT NULL,
    num INTEGER NOT NULL, -- rising within the entity
    workflow_id TEXT NOT NULL,
    input TEXT NOT NULL,
    labels TEXT NOT NULL,
    key TEXT NOT NULL, -- the idempotency key of the start
    tries INTEGER NOT NULL,
    PRIMARY KEY (entity, num)
) STRICT, WITHOUT ROWID;

-- One per generation, written when it begins: with it everything before can go.
CREATE TABLE entity_generations (
    entity INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    type_version INTEGER NOT NULL,
    reason TEXT NOT NULL, -- created, rolled_over, migrated, reopened
    state TEXT, -- as it was then; null: none yet
    version INTEGER NOT NULL,
    consumed_seq INTEGER NOT NULL,
    timers TEXT NOT NULL, -- JSON array
    dedup TEXT NOT NULL, -- JSON: how many keys were known, and the numbers of the first and the last
    first_event INTEGER NOT NULL,
    first_call INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (entity, generation)
) STRICT, WITHOUT ROWID;

-- Entities with something to remove: generations up to one, or, once it was deleted, everything. Of one that was deleted
-- the row says who it was for as long as somebody is to be told of its events; else that is null.
CREATE TABLE entity_sweeps (
    entity INTEGER PRIMARY KEY,
    through INTEGER NOT NULL, -- a generation
    deleted INTEGER NOT NULL,
    id BLOB,
    tenant INTEGER,
    type INTEGER,
    name TEXT,
    deleted_at INTEGER
) STRICT;

-- Keys of signals, numbered in the order of their arrival at their owner, a run or an entity.
CREATE TABLE dedup (
    owner INTEGER NOT NULL,
    num INTEGER NOT NULL, -- 1, 2, 3 ... without a gap
    key_hash INTEGER NOT NULL,
    key TEXT, -- null: outside the window; only its hash is left, to tell how late duplicates come
    request BLOB, -- fingerprint of name and payload; empty: made by an earlier version, which kept none
    seq INTEGER NOT NULL, -- the number that the signal got
    at INTEGER NOT NULL,
    PRIMARY KEY (owner, num)
) STRICT, WITHOUT ROWID;
CREATE INDEX dedup_by_key ON dedup (owner, key_hash);

-- The bounds of an owner's window in its numbers.
CREATE TABLE dedup_windows (
    owner INTEGER PRIMARY KEY,
    first INTEGER NOT NULL, -- the oldest key that is known
    last INTEGER NOT NULL, -- the newest; first > last: none is
    emptied INTEGER NOT NULL, -- rows below it have no text any more
    forgotten INTEGER NOT NULL -- rows below it are gone
) STRICT;

-- How duplicates of a type's signals come, by their age.
CREATE TABLE dedup_stats (
    type INTEGER NOT NULL,
    bucket INTEGER NOT NULL, -- see src/domain/dedup.h
    duplicates INTEGER NOT NULL, -- found inside the window
    late INTEGER NOT NULL, -- that came after their key was forgotten, and counted as new
    PRIMARY KEY (type, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE dedup_totals (
    type INTEGER PRIMARY KEY,
    keyed INTEGER NOT NULL, -- signals with a key that were new
    evicted_by_age INTEGER NOT NULL,
    evicted_by_count INTEGER NOT NULL,
    since INTEGER NOT NULL
) STRICT;

-- Keys of signals to runs, which were kept with the signals: now in windows as those of entities.
INSERT INTO dedup (owner, num, key_hash, key, request, seq, at)
    SELECT run, ROW_NUMBER() OVER (PARTITION BY run ORDER BY seq), pawl_key_hash(dedup_key), dedup_key, x'', seq, at
    FROM run_signals WHERE dedup_key IS NOT NULL;
INSERT INTO dedup_windows (owner, first, last, emptied, forgotten)
    SELECT owner, 1, MAX(num), 1, 1 FROM dedup GROUP BY owner;
ALTER TABLE run_signals DROP COLUMN dedup_key;
-- What waits in a run, by name, and what each of its jobs has taken.
CREATE INDEX run_signals_by_taker ON run_signals (run, taken_by, name, seq);
