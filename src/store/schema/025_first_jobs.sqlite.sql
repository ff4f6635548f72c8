-- The first job of a run is part of the run's row until it changes (docs/adr/053). Then it is in its queue, or sleeps or waits
-- for a signal, and has nothing else of its own than
ALTER TABLE runs ADD COLUMN first_queue TEXT; -- empty: it sleeps or waits; null: all jobs have rows, as in earlier versions
ALTER TABLE runs ADD COLUMN first_due INTEGER; -- until when

-- Those that are in their queue, as workers ask for them: what jobs_claimable is for the others.
CREATE TABLE first_jobs (
    queue TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (queue, tenant, urgency, run)
) STRICT, WITHOUT ROWID;

-- As rows of jobs. A row that is there counts more than what the run's row says.
CREATE VIEW first_job_rows (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
    error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts) AS
    SELECT num, 1, CAST(substr(id, 1, 8) || x'80000040' || substr(id, 13, 4) AS BLOB), tenant, 0,
        CASE WHEN first_queue = '' THEN 'scheduled' ELSE 'pending' END, first_queue, -priority,
        CASE WHEN first_queue = '' THEN 1 ELSE 0 END, 0, NULL, first_due, NULL, NULL, created_at,
        CASE WHEN first_queue = '' THEN created_at END, NULL, 0, 0, NULL, NULL, NULL,
        NULL, NULL, 0, NULL
    FROM runs WHERE first_queue IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.run = runs.num AND j.ordinal = 1);

-- All jobs, for people and for tests.
CREATE VIEW job_rows (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
    error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts) AS
    SELECT run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
        error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts
    FROM jobs
    UNION ALL
    SELECT run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
        error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts
    FROM first_job_rows;
