-- What people decide, and what the world is told.

-- One per job that waits, or waited, for a person. What is asked for (how many, who may, what happens when nobody does) is
-- in the run's definition.
CREATE TABLE approvals (
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    tenant INTEGER NOT NULL,
    status TEXT NOT NULL, -- pending, approved, rejected, expired, or void: the run ended first
    prompt TEXT NOT NULL,
    content TEXT NOT NULL, -- JSON: what is shown
    content_hash TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    expires_at INTEGER,
    reminded INTEGER NOT NULL DEFAULT 0, -- reminders sent
    escalated_at INTEGER,
    votes INTEGER NOT NULL DEFAULT 0, -- for it, while more are needed
    decided_by TEXT, -- pawl itself, when it expired
    decided_at INTEGER,
    reason TEXT,
    edited TEXT, -- JSON: what the person made of the content
    replays INTEGER NOT NULL DEFAULT 0,
    conflicts INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_status ON approvals (tenant, status, requested_at, run, ordinal);
CREATE INDEX approvals_by_time ON approvals (tenant, requested_at, run, ordinal);

-- Who has voted for it, so that nobody counts twice.
CREATE TABLE approval_votes (
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    reason TEXT,
    PRIMARY KEY (run, ordinal, actor)
) STRICT, WITHOUT ROWID;

-- Every growth of a timeline in the order of the commits: which run, and which of its events. Written with them, read by
-- whoever tells the world, kept for a while for those who come back.
CREATE TABLE feed (
    num INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    run INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- How far somebody has come in the feed: `swept` has removed it, `bus` has been acknowledged, `webhooks` has been fanned out.
CREATE TABLE feed_marks (
    name TEXT PRIMARY KEY,
    through INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Messages that the bus will never take, put aside so that those behind them go on.
CREATE TABLE parked (
    feed INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    offer INTEGER NOT NULL, -- 1: of the job that the event tells of, to workers
    message_id TEXT NOT NULL UNIQUE,
    tenant INTEGER NOT NULL,
    run INTEGER NOT NULL,
    type TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    at INTEGER NOT NULL,
    again INTEGER NOT NULL DEFAULT 0, -- 1: somebody asked for another try
    PRIMARY KEY (feed, seq, offer)
) STRICT, WITHOUT ROWID;
CREATE INDEX parked_again ON parked (feed, seq, offer) WHERE again = 1;

CREATE TABLE webhooks (
    num INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    tenant INTEGER NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL, -- patterns with commas between them, as run.*,approval.decided
    description TEXT,
    secret BLOB NOT NULL,
    old_secret BLOB, -- signs too, until old_secret_until
    old_secret_until INTEGER,
    failing_since INTEGER, -- no attempt has succeeded since
    disabled_at INTEGER,
    disabled_reason TEXT,
    feed_from INTEGER NOT NULL, -- rows of the feed above it are its business
    deleted_at INTEGER, -- gone for everybody; the row goes when its deliveries are gone
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_of_tenant ON webhooks (tenant, num);

-- One per event and webhook: what is to be sent, and how that went. As with runs the number is the time in the id.
CREATE TABLE deliveries (
    num INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    webhook INTEGER NOT NULL,
    tenant INTEGER NOT NULL,
    run INTEGER, -- none: a test
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL, -- pending, sending, delivered, failed
    attempts INTEGER NOT NULL, -- hand-outs so far: a result of an earlier one changes nothing
    schedule_from INTEGER NOT NULL, -- attempts before the schedule of retries began, or began anew
    next_at INTEGER, -- when it is due, or, while it is being sent, due again
    last_status INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;
CREATE INDEX deliveries_due ON deliveries (webhook, next_at, num) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_of_webhook ON deliveries (webhook, num);

-- How long each chain of the audit is and how it ends, so that entries cut off at its end are missed.
CREATE TABLE audit_heads (
    tenant INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
INSERT INTO audit_heads (tenant, seq, hash)
    SELECT a.tenant, a.seq, a.hash FROM audit a
    WHERE a.seq = (SELECT MAX(b.seq) FROM audit b WHERE b.tenant = a.tenant);
