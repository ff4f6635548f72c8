-- Durable functions: what a job's worker has finished, and what the job waits for without a worker.
CREATE TABLE checkpoints (
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    seq INTEGER NOT NULL, -- 1, 2, 3 ... within the job
    name TEXT NOT NULL,
    bytes INTEGER NOT NULL, -- of the names and values up to this one
    at INTEGER NOT NULL,
    output TEXT, -- JSON; null: it has an error
    error TEXT, -- JSON
    PRIMARY KEY (run, ordinal, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX checkpoints_by_name ON checkpoints (run, ordinal, name);

-- The newest suspension of each job that had one.
CREATE TABLE suspensions (
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    num INTEGER NOT NULL, -- 1, 2, 3 ... of the job's
    lease INTEGER NOT NULL, -- the lease_epoch that gave the job up
    name TEXT, -- the worker's own name for it
    until INTEGER, -- what it waits for: a time, or the end of waiting for the signal;
    signal TEXT, -- a signal;
    question INTEGER, -- a decision: the ordinal of the job that asks for it
    at INTEGER NOT NULL,
    resumed_by TEXT, -- JSON; null: nothing has come yet
    PRIMARY KEY (run, ordinal)
) STRICT, WITHOUT ROWID;

-- A question of a suspended job has a job of its own, so that each decision has an id.
ALTER TABLE approvals ADD COLUMN asker INTEGER; -- the ordinal of the suspended job; null: the job that is approved asks
ALTER TABLE approvals ADD COLUMN ask TEXT; -- JSON: who may decide, and until when; null: as the step says
