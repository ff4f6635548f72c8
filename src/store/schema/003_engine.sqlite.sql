-- What the workflow engine keeps: how far each run is, what jobs need beyond a plain task, signals for runs.

ALTER TABLE runs ADD COLUMN progress TEXT; -- see src/domain/progress.h; null in runs of earlier versions: read from their jobs
ALTER TABLE runs ADD COLUMN deadline_at INTEGER; -- null: it may take as long as it likes
ALTER TABLE runs ADD COLUMN start_at INTEGER; -- a queued run that waits for this time, and stands in no line yet
ALTER TABLE runs ADD COLUMN parent_run INTEGER; -- null: nobody's child
ALTER TABLE runs ADD COLUMN parent_ordinal INTEGER;
ALTER TABLE runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN rerun_of BLOB;

ALTER TABLE jobs ADD COLUMN item INTEGER NOT NULL DEFAULT 0; -- which one of a step with for_each
ALTER TABLE jobs ADD COLUMN undo INTEGER NOT NULL DEFAULT 0; -- 1: it compensates the step
ALTER TABLE jobs ADD COLUMN input TEXT; -- null: the step's own, or the run's
ALTER TABLE jobs ADD COLUMN lease_ms INTEGER;
ALTER TABLE jobs ADD COLUMN note TEXT; -- what the last heartbeat told
ALTER TABLE jobs ADD COLUMN child BLOB; -- the run that a step of type workflow started
ALTER TABLE jobs ADD COLUMN dead_at INTEGER; -- failed for good while it mattered: a dead letter
ALTER TABLE jobs ADD COLUMN stale_epoch INTEGER NOT NULL DEFAULT 0; -- the last lease whose late worker is in the timeline
CREATE INDEX jobs_dead ON jobs (tenant, dead_at, run, ordinal) WHERE dead_at IS NOT NULL;

-- The items of a step with for_each, as they were when it began.
CREATE TABLE map_items (
    run INTEGER NOT NULL,
    step INTEGER NOT NULL,
    items TEXT NOT NULL,
    PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

-- Signals to runs; one that came before its step waits here.
CREATE TABLE run_signals (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    payload TEXT NOT NULL,
    dedup_key TEXT,
    at INTEGER NOT NULL,
    taken_by INTEGER, -- the ordinal of the job that it was for; null: it still waits
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE schedules (
    tenant INTEGER NOT NULL,
    id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    cron TEXT NOT NULL,
    timezone TEXT NOT NULL,
    overlap TEXT NOT NULL,
    catch_up_ms INTEGER NOT NULL,
    input TEXT NOT NULL,
    paused INTEGER NOT NULL,
    next_at INTEGER, -- the time that is fired next; null: paused, or never again
    check_at INTEGER, -- when to look: next_at, or later while it cannot be fired
    last_at INTEGER,
    last_run BLOB,
    last_error TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (check_at) WHERE check_at IS NOT NULL;

-- How long finished runs are kept; null: for ever.
ALTER TABLE tenants ADD COLUMN run_retention_ms INTEGER;
CREATE INDEX tenants_retaining ON tenants (num) WHERE run_retention_ms IS NOT NULL;
