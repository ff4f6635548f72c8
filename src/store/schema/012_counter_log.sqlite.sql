-- What a commit changes in the counters of tenants is one row here, for all tenants together. It is newer than the
-- columns active_runs, queued_runs and rate_full_at of `tenants`, to which it is folded now and then (docs/adr/032).
CREATE TABLE counter_log (
    num INTEGER PRIMARY KEY, -- 1, 2, 3 ... since the last fold
    counters TEXT NOT NULL -- JSON: [[tenant, active_runs, queued_runs, rate_full_at], ...]
) STRICT;

-- The newest entry of each tenant that the log has. A damaged row has none; the doctor finds it.
CREATE VIEW logged_counters AS
SELECT tenant, active_runs, queued_runs, rate_full_at FROM (
    SELECT e.value ->> 0 AS tenant, e.value ->> 1 AS active_runs, e.value ->> 2 AS queued_runs,
        e.value ->> 3 AS rate_full_at, row_number() OVER (PARTITION BY e.value ->> 0 ORDER BY l.num DESC) AS age
    FROM counter_log l, json_each(CASE WHEN json_valid(l.counters) THEN l.counters ELSE '[]' END) e
) AS entries WHERE age = 1;

-- The counters of every tenant as they are.
CREATE VIEW tenant_counters AS
SELECT t.num AS tenant, t.id AS id, COALESCE(l.active_runs, t.active_runs) AS active_runs,
    COALESCE(l.queued_runs, t.queued_runs) AS queued_runs, COALESCE(l.rate_full_at, t.rate_full_at) AS rate_full_at
FROM tenants t LEFT JOIN logged_counters l ON l.tenant = t.num;
