-- Everything that pawl keeps, as migrations 1 to 16 of SQLite leave it: the meaning of each table and column is told
-- there. A shard is a schema with these tables. Texts compare byte by byte, as in SQLite, whatever the database's own
-- collation.

CREATE TABLE tenants (
    num bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    name text COLLATE "C",
    max_concurrent_runs bigint,
    max_queued_runs bigint,
    at_limit text COLLATE "C" NOT NULL,
    idempotency_retention_ms bigint,
    weight bigint NOT NULL,
    gate text COLLATE "C" NOT NULL,
    rate_limit text COLLATE "C",
    active_runs bigint NOT NULL CHECK (active_runs >= 0),
    queued_runs bigint NOT NULL CHECK (queued_runs >= 0),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    settings_version bigint NOT NULL DEFAULT 1,
    rate_full_at bigint NOT NULL DEFAULT 0,
    run_retention_ms bigint
);
CREATE INDEX tenants_retaining ON tenants (num) WHERE run_retention_ms IS NOT NULL;

CREATE TABLE api_keys (
    id bytea PRIMARY KEY,
    tenant bigint,
    prefix text COLLATE "C" NOT NULL UNIQUE,
    hash bytea NOT NULL,
    role text COLLATE "C" NOT NULL,
    label text COLLATE "C",
    created_at bigint NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    last_used_at bigint,
    revoked_at bigint
);

CREATE TABLE workflows (
    tenant bigint,
    id text COLLATE "C",
    latest_version bigint NOT NULL,
    description text COLLATE "C",
    archived_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE workflow_versions (
    tenant bigint,
    workflow_id text COLLATE "C",
    version bigint,
    digest bytea NOT NULL,
    definition text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, workflow_id, version)
);

CREATE TABLE idempotency (
    num bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    key_hash bigint NOT NULL,
    route text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    raw_hash bytea NOT NULL,
    run_id bytea,
    status bigint NOT NULL,
    says_created bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    replays bigint NOT NULL,
    mismatches bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_replayed_at bigint,
    born text COLLATE "C"
);
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE indexed (
    name text COLLATE "C" PRIMARY KEY,
    through bigint NOT NULL
);

CREATE TABLE runs (
    num bigint PRIMARY KEY,
    id bytea NOT NULL,
    tenant bigint NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    workflow_version bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    priority bigint NOT NULL,
    input text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    output text COLLATE "C",
    error text COLLATE "C",
    labels text COLLATE "C" NOT NULL,
    traceparent text COLLATE "C",
    created_by text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    scopes text COLLATE "C",
    progress text COLLATE "C",
    deadline_at bigint,
    start_at bigint,
    parent_run bigint,
    parent_ordinal bigint,
    depth bigint NOT NULL DEFAULT 0,
    rerun_of bytea,
    tracestate text COLLATE "C",
    key_num bigint
);
CREATE INDEX runs_ended_badly ON runs (tenant, status, num)
    WHERE status = 'failed' OR status = 'denied' OR status = 'cancelled' OR status = 'timed_out';

CREATE TABLE runs_index (
    tenant bigint,
    num bigint,
    PRIMARY KEY (tenant, num)
);

CREATE TABLE jobs (
    run bigint,
    ordinal bigint,
    id bytea NOT NULL,
    tenant bigint NOT NULL,
    step bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    urgency bigint NOT NULL,
    attempt bigint NOT NULL,
    lease_epoch bigint NOT NULL,
    worker text COLLATE "C",
    due_at bigint,
    output text COLLATE "C",
    error text COLLATE "C",
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    item bigint NOT NULL DEFAULT 0,
    undo bigint NOT NULL DEFAULT 0,
    input text COLLATE "C",
    lease_ms bigint,
    note text COLLATE "C",
    child bytea,
    dead_at bigint,
    stale_epoch bigint NOT NULL DEFAULT 0,
    attempts text COLLATE "C",
    PRIMARY KEY (run, ordinal)
);
CREATE INDEX jobs_dead ON jobs (tenant, dead_at, run, ordinal) WHERE dead_at IS NOT NULL;
CREATE INDEX jobs_claimable
    ON jobs (queue, tenant, urgency, (CASE WHEN step < 0 THEN created_at * 4096 ELSE run END), run, ordinal)
    WHERE state = 'pending';

CREATE TABLE timers (
    due_at bigint,
    run bigint,
    ordinal bigint,
    generation bigint NOT NULL,
    tenant bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (due_at, run, ordinal)
);

CREATE TABLE timeline (
    run bigint,
    seq bigint,
    at bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    data text COLLATE "C",
    job bigint,
    published_as text COLLATE "C",
    PRIMARY KEY (run, seq)
);

CREATE TABLE audit (
    tenant bigint,
    seq bigint,
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    peer text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    detail text COLLATE "C",
    hash bytea NOT NULL,
    PRIMARY KEY (tenant, seq)
);

CREATE TABLE tenant_settings (
    tenant bigint,
    version bigint,
    settings text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, version)
);

CREATE TABLE holding (
    tenant bigint,
    run bigint,
    PRIMARY KEY (tenant, run)
);

CREATE TABLE scopes (
    num bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    active_runs bigint NOT NULL CHECK (active_runs >= 0),
    queued_runs bigint NOT NULL CHECK (queued_runs >= 0)
);
CREATE UNIQUE INDEX scopes_by_key ON scopes (tenant, workflow_id, path, key);

CREATE TABLE slots (
    scope bigint,
    run bigint,
    PRIMARY KEY (scope, run)
);

CREATE TABLE lines (
    num bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    scopes text COLLATE "C" NOT NULL,
    waits_for bigint NOT NULL,
    urgency bigint NOT NULL,
    run bigint NOT NULL
);
CREATE UNIQUE INDEX lines_by_scopes ON lines (tenant, scopes);
CREATE INDEX lines_waiting ON lines (tenant, waits_for, urgency, run);

CREATE TABLE line_scopes (
    scope bigint,
    line bigint,
    PRIMARY KEY (scope, line)
);

CREATE TABLE queue (
    line bigint,
    urgency bigint,
    run bigint,
    tenant bigint NOT NULL,
    PRIMARY KEY (line, urgency, run)
);
CREATE INDEX queue_by_age ON queue (tenant, run);

CREATE TABLE map_items (
    run bigint,
    step bigint,
    items text COLLATE "C" NOT NULL,
    PRIMARY KEY (run, step)
);

CREATE TABLE run_signals (
    run bigint,
    seq bigint,
    name text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    taken_by bigint,
    PRIMARY KEY (run, seq)
);
CREATE INDEX run_signals_by_taker ON run_signals (run, taken_by, name, seq);

CREATE TABLE schedules (
    tenant bigint,
    id text COLLATE "C",
    workflow_id text COLLATE "C" NOT NULL,
    cron text COLLATE "C" NOT NULL,
    timezone text COLLATE "C" NOT NULL,
    overlap text COLLATE "C" NOT NULL,
    catch_up_ms bigint NOT NULL,
    input text COLLATE "C" NOT NULL,
    paused bigint NOT NULL,
    next_at bigint,
    check_at bigint,
    last_at bigint,
    last_run bytea,
    last_error text COLLATE "C",
    created_by text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX schedules_due ON schedules (check_at) WHERE check_at IS NOT NULL;

CREATE TABLE approvals (
    run bigint,
    ordinal bigint,
    tenant bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    prompt text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    requested_by text COLLATE "C" NOT NULL,
    requested_at bigint NOT NULL,
    expires_at bigint,
    reminded bigint NOT NULL DEFAULT 0,
    escalated_at bigint,
    votes bigint NOT NULL DEFAULT 0,
    decided_by text COLLATE "C",
    decided_at bigint,
    reason text COLLATE "C",
    edited text COLLATE "C",
    replays bigint NOT NULL DEFAULT 0,
    conflicts bigint NOT NULL DEFAULT 0,
    asker bigint,
    ask text COLLATE "C",
    PRIMARY KEY (run, ordinal)
);
CREATE INDEX approvals_by_status ON approvals (tenant, status, requested_at, run, ordinal);
CREATE INDEX approvals_by_time ON approvals (tenant, requested_at, run, ordinal);

CREATE TABLE approval_votes (
    run bigint,
    ordinal bigint,
    actor text COLLATE "C",
    at bigint NOT NULL,
    reason text COLLATE "C",
    PRIMARY KEY (run, ordinal, actor)
);

CREATE TABLE feed (
    num bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    run bigint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL
);

CREATE TABLE feed_marks (
    name text COLLATE "C" PRIMARY KEY,
    through bigint NOT NULL
);

CREATE TABLE parked (
    feed bigint,
    seq bigint,
    offer bigint,
    message_id text COLLATE "C" NOT NULL UNIQUE,
    tenant bigint NOT NULL,
    run bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    at bigint NOT NULL,
    again bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (feed, seq, offer)
);
CREATE INDEX parked_again ON parked (feed, seq, offer) WHERE again = 1;

CREATE TABLE webhooks (
    num bigint PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    tenant bigint NOT NULL,
    url text COLLATE "C" NOT NULL,
    events text COLLATE "C" NOT NULL,
    description text COLLATE "C",
    secret bytea NOT NULL,
    old_secret bytea,
    old_secret_until bigint,
    failing_since bigint,
    disabled_at bigint,
    disabled_reason text COLLATE "C",
    feed_from bigint NOT NULL,
    deleted_at bigint,
    created_by text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX webhooks_of_tenant ON webhooks (tenant, num);

CREATE TABLE deliveries (
    num bigint PRIMARY KEY,
    id bytea NOT NULL,
    webhook bigint NOT NULL,
    tenant bigint NOT NULL,
    run bigint,
    event_id text COLLATE "C" NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    schedule_from bigint NOT NULL,
    next_at bigint,
    last_status bigint,
    last_error text COLLATE "C",
    created_at bigint NOT NULL,
    finished_at bigint
);
CREATE INDEX deliveries_due ON deliveries (webhook, next_at, num) WHERE next_at IS NOT NULL;
CREATE INDEX deliveries_of_webhook ON deliveries (webhook, num);

CREATE TABLE audit_heads (
    tenant bigint PRIMARY KEY,
    seq bigint NOT NULL,
    hash bytea NOT NULL
);

CREATE TABLE entity_types (
    num bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    latest_version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE UNIQUE INDEX entity_types_by_id ON entity_types (tenant, id);

CREATE TABLE entity_type_versions (
    type bigint,
    version bigint,
    queue text COLLATE "C" NOT NULL,
    handler text COLLATE "C" NOT NULL,
    dedup_window_ms bigint NOT NULL,
    dedup_max_keys bigint NOT NULL,
    rollover_events bigint NOT NULL,
    keep_generations bigint,
    max_inbox bigint NOT NULL,
    max_batch bigint NOT NULL,
    max_attempts bigint NOT NULL,
    backoff_ms bigint NOT NULL,
    max_backoff_ms bigint NOT NULL,
    requeued text COLLATE "C",
    created_by text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (type, version)
);
CREATE INDEX entity_type_versions_requeueing ON entity_type_versions (type, version) WHERE requeued IS NOT NULL;

CREATE TABLE entities (
    num bigint PRIMARY KEY,
    id bytea NOT NULL,
    tenant bigint NOT NULL,
    type bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    type_version bigint NOT NULL,
    version bigint NOT NULL,
    generation bigint NOT NULL,
    last_seq bigint NOT NULL,
    consumed_seq bigint NOT NULL,
    given_seq bigint,
    last_event bigint NOT NULL,
    rolled_event bigint NOT NULL,
    calls bigint NOT NULL,
    open_job bigint,
    timer_at bigint,
    migrate_to bigint,
    created_at bigint NOT NULL,
    active_at bigint NOT NULL,
    finished_at bigint
);
CREATE UNIQUE INDEX entities_by_name ON entities (type, name);
CREATE INDEX entities_by_version ON entities (type, type_version, name);

CREATE TABLE entity_states (
    entity bigint PRIMARY KEY,
    type_version bigint NOT NULL,
    state text COLLATE "C" NOT NULL
);

CREATE TABLE inbox (
    entity bigint,
    seq bigint,
    name text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL,
    asks bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (entity, seq)
);

CREATE TABLE entity_updates (
    entity bigint,
    seq bigint,
    name text COLLATE "C" NOT NULL,
    outcome text COLLATE "C",
    rejected bigint NOT NULL,
    at bigint NOT NULL,
    decided_at bigint,
    PRIMARY KEY (entity, seq)
);

CREATE TABLE entity_timers (
    entity bigint,
    name text COLLATE "C",
    due_at bigint NOT NULL,
    payload text COLLATE "C",
    given bigint NOT NULL,
    PRIMARY KEY (entity, name)
);

CREATE TABLE entity_starts (
    entity bigint,
    num bigint,
    workflow_id text COLLATE "C" NOT NULL,
    input text COLLATE "C" NOT NULL,
    labels text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    tries bigint NOT NULL,
    PRIMARY KEY (entity, num)
);

CREATE TABLE entity_generations (
    entity bigint,
    generation bigint,
    type_version bigint NOT NULL,
    reason text COLLATE "C" NOT NULL,
    state text COLLATE "C",
    version bigint NOT NULL,
    consumed_seq bigint NOT NULL,
    timers text COLLATE "C" NOT NULL,
    dedup text COLLATE "C" NOT NULL,
    first_event bigint NOT NULL,
    first_call bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (entity, generation)
);

CREATE TABLE entity_sweeps (
    entity bigint PRIMARY KEY,
    through bigint NOT NULL,
    deleted bigint NOT NULL,
    id bytea,
    tenant bigint,
    type bigint,
    name text COLLATE "C",
    deleted_at bigint
);

CREATE TABLE dedup (
    owner bigint,
    num bigint,
    key_hash bigint NOT NULL,
    key text COLLATE "C",
    request bytea,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (owner, num)
);
CREATE INDEX dedup_by_key ON dedup (owner, key_hash);

CREATE TABLE dedup_windows (
    owner bigint PRIMARY KEY,
    first bigint NOT NULL,
    last bigint NOT NULL,
    emptied bigint NOT NULL,
    forgotten bigint NOT NULL
);

CREATE TABLE dedup_stats (
    type bigint,
    bucket bigint,
    duplicates bigint NOT NULL,
    late bigint NOT NULL,
    PRIMARY KEY (type, bucket)
);

CREATE TABLE dedup_totals (
    type bigint PRIMARY KEY,
    keyed bigint NOT NULL,
    evicted_by_age bigint NOT NULL,
    evicted_by_count bigint NOT NULL,
    since bigint NOT NULL
);

CREATE TABLE secrets (
    name text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE checkpoints (
    run bigint,
    ordinal bigint,
    seq bigint,
    name text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    at bigint NOT NULL,
    output text COLLATE "C",
    error text COLLATE "C",
    PRIMARY KEY (run, ordinal, seq)
);
CREATE UNIQUE INDEX checkpoints_by_name ON checkpoints (run, ordinal, name);

CREATE TABLE suspensions (
    run bigint,
    ordinal bigint,
    num bigint NOT NULL,
    lease bigint NOT NULL,
    name text COLLATE "C",
    until bigint,
    signal text COLLATE "C",
    question bigint,
    at bigint NOT NULL,
    resumed_by text COLLATE "C",
    PRIMARY KEY (run, ordinal)
);

CREATE TABLE counter_log (
    num bigint PRIMARY KEY,
    counters text COLLATE "C" NOT NULL
);

CREATE TABLE key_segments (
    id bigint PRIMARY KEY,
    state text COLLATE "C" NOT NULL,
    entries bigint NOT NULL,
    blocks bigint NOT NULL,
    lines bigint NOT NULL
);

CREATE TABLE key_blocks (
    num bigint PRIMARY KEY,
    entries bytea NOT NULL
);

CREATE TABLE key_filters (
    num bigint PRIMARY KEY,
    bits bytea NOT NULL
);

INSERT INTO indexed (name, through) VALUES ('idempotency', 0), ('runs', 0), ('timers', 0);

CREATE FUNCTION json_valid(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    PERFORM $1::json;
    RETURN true;
EXCEPTION WHEN others THEN
    RETURN false;
END $$;

-- A whole number in a JSON array; null for anything else.
CREATE FUNCTION json_whole(json, int) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN ($1 ->> $2) ~ '^-?[0-9]{1,18}$|^-?[0-8][0-9]{18}$' THEN ($1 ->> $2)::bigint END
$$;

-- The elements of a JSON array, from 0 on; none when the text is damaged.
CREATE FUNCTION json_elements(text) RETURNS TABLE (value json, key bigint) LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT e.value, e.place - 1 FROM json_array_elements(
        CASE WHEN json_valid($1) AND json_typeof($1::json) = 'array' THEN $1::json ELSE '[]' END)
        WITH ORDINALITY AS e (value, place)
$$;

-- The newest entry of each tenant that the log has. A damaged row has none; the doctor finds it.
CREATE VIEW logged_counters AS
SELECT tenant, active_runs, queued_runs, rate_full_at FROM (
    SELECT json_whole(e.value, 0) AS tenant, json_whole(e.value, 1) AS active_runs, json_whole(e.value, 2) AS queued_runs,
        json_whole(e.value, 3) AS rate_full_at,
        row_number() OVER (PARTITION BY json_whole(e.value, 0) ORDER BY l.num DESC) AS age
    FROM counter_log l, json_elements(l.counters) e
) AS entries WHERE age = 1;

-- The counters of every tenant as they are.
CREATE VIEW tenant_counters AS
SELECT t.num AS tenant, t.id AS id, COALESCE(l.active_runs, t.active_runs) AS active_runs,
    COALESCE(l.queued_runs, t.queued_runs) AS queued_runs, COALESCE(l.rate_full_at, t.rate_full_at) AS rate_full_at
FROM tenants t LEFT JOIN logged_counters l ON l.tenant = t.num;

-- Event by event, for people, for the doctor and for tests.
CREATE VIEW events (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline WHERE type <> ''
    UNION ALL
    SELECT t.run, t.seq - json_array_length(t.data::json) + 1 + e.key, t.at, e.value ->> 0, (e.value -> 1)::text,
        json_whole(e.value, 2), e.value ->> 3
    FROM timeline t, json_elements(t.data) e WHERE t.type = '';
