-- What pawl keeps, first version. Times are milliseconds UTC, ids are UUIDv7 in 16 bytes, JSON is text.
-- Numbers called `num` rise over all tenants' rows of a table in the order in which they were made, so that what one
-- commit writes lies together on few pages, whoever it is for. A run's num is the time in its id, a job's id names its
-- run's num and its ordinal, so neither needs an index by id. What must be found by tenant is indexed later, in bulk:
-- rows above `indexed.through` are not in the *_index tables yet (docs/adr/003).

CREATE TABLE tenants (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    max_concurrent_runs INTEGER,
    max_queued_runs INTEGER,
    at_limit TEXT NOT NULL,
    idempotency_retention_ms INTEGER,
    weight INTEGER NOT NULL,
    gate TEXT NOT NULL,
    rate_limit TEXT,
    active_runs INTEGER NOT NULL CHECK (active_runs >= 0),
    queued_runs INTEGER NOT NULL CHECK (queued_runs >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
    id BLOB PRIMARY KEY,
    tenant INTEGER, -- null: a key for all tenants
    prefix TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    role TEXT NOT NULL,
    label TEXT,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE workflows (
    tenant INTEGER NOT NULL,
    id TEXT NOT NULL,
    latest_version INTEGER NOT NULL,
    description TEXT,
    archived_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE workflow_versions (
    tenant INTEGER NOT NULL,
    workflow_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest BLOB NOT NULL,
    definition TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (tenant, workflow_id, version)
) STRICT;

CREATE TABLE idempotency (
    num INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    key TEXT NOT NULL,
    key_hash INTEGER NOT NULL,
    route TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    raw_hash BLOB NOT NULL,
    run_id BLOB,
    status INTEGER NOT NULL,
    says_created INTEGER NOT NULL,
    body TEXT NOT NULL,
    replays INTEGER NOT NULL,
    mismatches INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER, -- null: never
    last_replayed_at INTEGER
) STRICT;
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE idempotency_index (
    tenant INTEGER NOT NULL,
    key_hash INTEGER NOT NULL,
    num INTEGER NOT NULL,
    PRIMARY KEY (tenant, key_hash, num)
) STRICT, WITHOUT ROWID;

CREATE TABLE indexed (
    name TEXT PRIMARY KEY,
    through INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO indexed (name, through) VALUES ('idempotency', 0), ('runs', 0);

CREATE TABLE runs (
    num INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    tenant INTEGER NOT NULL,
    workflow_id TEXT NOT NULL,
    workflow_version INTEGER NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    input TEXT NOT NULL,
    state TEXT NOT NULL,
    output TEXT,
    error TEXT,
    labels TEXT NOT NULL,
    traceparent TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER
) STRICT;
-- Spelt with OR: for a list of IN, SQLite would build a temporary table at every insert.
CREATE INDEX runs_ended_badly ON runs (tenant, status, num)
    WHERE status = 'failed' OR status = 'denied' OR status = 'cancelled' OR status = 'timed_out';

CREATE TABLE runs_index (
    tenant INTEGER NOT NULL,
    num INTEGER NOT NULL,
    PRIMARY KEY (tenant, num)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    id BLOB NOT NULL,
    tenant INTEGER NOT NULL,
    step INTEGER NOT NULL,
    state TEXT NOT NULL,
    queue TEXT NOT NULL,
    urgency INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    lease_epoch INTEGER NOT NULL,
    worker TEXT,
    due_at INTEGER,
    output TEXT,
    error TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    PRIMARY KEY (run, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_claimable ON jobs (queue, tenant, urgency, run, ordinal) WHERE state = 'pending';

CREATE TABLE timers (
    due_at INTEGER NOT NULL,
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (due_at, run, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    data TEXT,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    tenant INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    peer TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail TEXT,
    hash BLOB NOT NULL,
    PRIMARY KEY (tenant, seq)
) STRICT, WITHOUT ROWID;
