-- As 025 of SQLite, where it is explained.
ALTER TABLE runs ADD COLUMN first_queue text COLLATE "C";
ALTER TABLE runs ADD COLUMN first_due bigint;

CREATE TABLE first_jobs (
    queue text COLLATE "C",
    tenant bigint,
    urgency bigint,
    run bigint,
    PRIMARY KEY (queue, tenant, urgency, run)
);

-- The types are those of jobs, so that a condition on all jobs is one on each.
CREATE VIEW first_job_rows (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
    error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts) AS
    SELECT num, 1::bigint, substr(id, 1, 8) || '\x80000040'::bytea || substr(id, 13, 4), tenant, 0::bigint,
        CASE WHEN first_queue = '' THEN 'scheduled' ELSE 'pending' END, first_queue, -priority,
        CASE WHEN first_queue = '' THEN 1::bigint ELSE 0::bigint END, 0::bigint, NULL::text, first_due, NULL::text, NULL::text, created_at,
        CASE WHEN first_queue = '' THEN created_at END, NULL::bigint, 0::bigint, 0::bigint, NULL::text, NULL::bigint, NULL::text,
        NULL::bytea, NULL::bigint, 0::bigint, NULL::text
    FROM runs WHERE first_queue IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.run = runs.num AND j.ordinal = 1);

CREATE VIEW job_rows (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
    error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts) AS
    SELECT run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
        error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts
    FROM jobs
    UNION ALL
    SELECT run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch, worker, due_at, output,
        error, created_at, started_at, finished_at, item, undo, input, lease_ms, note, child, dead_at, stale_epoch, attempts
    FROM first_job_rows;
