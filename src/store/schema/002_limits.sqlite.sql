-- Limits by workflow and by key, runs that wait for a slot, and settings that can be rolled back.
-- Everything here but tenant_settings is derived from the runs: `pawl doctor` recounts it, and --repair makes it anew.

-- The scopes a run counts under besides its tenant: their numbers, rising, with commas; null for none.
ALTER TABLE runs ADD COLUMN scopes TEXT;

ALTER TABLE tenants ADD COLUMN settings_version INTEGER NOT NULL DEFAULT 1;
-- When the tenant's bucket of starts is full again, in nanoseconds: the whole state of its rate limit.
ALTER TABLE tenants ADD COLUMN rate_full_at INTEGER NOT NULL DEFAULT 0;

-- What a tenant's settings were, so that a change can be taken back.
CREATE TABLE tenant_settings (
    tenant INTEGER NOT NULL,
    version INTEGER NOT NULL,
    settings TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    PRIMARY KEY (tenant, version)
) STRICT, WITHOUT ROWID;

-- The runs that hold a slot of their tenant, as far as indexed.through of 'runs' reaches: a run that ends soon is never
-- written here.
CREATE TABLE holding (
    tenant INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (tenant, run)
) STRICT, WITHOUT ROWID;
INSERT INTO holding (tenant, run)
    SELECT tenant, num FROM runs WHERE num <= (SELECT through FROM indexed WHERE name = 'runs')
    AND (status = 'pending' OR status = 'running' OR status = 'waiting' OR status = 'paused') ORDER BY tenant, num;

-- One per workflow, or per key that its runs name, while a run counts under it.
CREATE TABLE scopes (
    num INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    workflow_id TEXT NOT NULL,
    path TEXT NOT NULL, -- where in the input the key is; '': the limit is for the whole workflow
    key TEXT NOT NULL,
    active_runs INTEGER NOT NULL CHECK (active_runs >= 0),
    queued_runs INTEGER NOT NULL CHECK (queued_runs >= 0)
) STRICT;
CREATE UNIQUE INDEX scopes_by_key ON scopes (tenant, workflow_id, path, key);

-- The runs that hold a slot of a scope.
CREATE TABLE slots (
    scope INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (scope, run)
) STRICT, WITHOUT ROWID;

-- Queued runs of one tenant that count under the same scopes stand in one line, because they are blocked together.
-- A line waits for one limit that is full: a scope, or 0, the tenant's own. Its first run stands in it.
CREATE TABLE lines (
    num INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    scopes TEXT NOT NULL, -- as in runs; '' for none
    waits_for INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    run INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX lines_by_scopes ON lines (tenant, scopes);
CREATE INDEX lines_waiting ON lines (tenant, waits_for, urgency, run);

CREATE TABLE line_scopes (
    scope INTEGER NOT NULL,
    line INTEGER NOT NULL,
    PRIMARY KEY (scope, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue (
    line INTEGER NOT NULL,
    urgency INTEGER NOT NULL, -- minus the priority: smaller is sooner
    run INTEGER NOT NULL,
    tenant INTEGER NOT NULL,
    PRIMARY KEY (line, urgency, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_by_age ON queue (tenant, run);
