-- What a commit adds to the feed is one row, a pack (src/store/outbox/feed.h): the last row of the feed in its columns, and those
-- before it as text. A row of an earlier version is a pack of one.
ALTER TABLE feed RENAME TO feed_packs;
ALTER TABLE feed_packs ADD COLUMN earlier TEXT; -- [[tenant, distance of its run from this one, first_seq, last_seq], ...]

-- Row by row, with the pack of each, for people and for tests. Not json_valid(): without memory it says no, and rows would be missing.
CREATE VIEW feed (num, tenant, run, first_seq, last_seq, at, pack) AS
    SELECT num, tenant, run, first_seq, last_seq, at, num FROM feed_packs
    UNION ALL
    SELECT p.num - json_array_length(p.earlier) + e.key, e.value ->> 0, p.run + (e.value ->> 1), e.value ->> 2, e.value ->> 3, p.at,
        p.num
    FROM feed_packs p, json_each(CASE WHEN p.earlier LIKE '[[%]]' THEN p.earlier ELSE '[]' END) e;

-- The runs and entities whose timers may be in memory only (src/store/run/timers.h): those with a row above the mark.
CREATE VIEW owners_ahead (run) AS
    SELECT run FROM feed_packs WHERE num > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0)
    UNION ALL
    SELECT p.run + (e.value ->> 1)
    FROM feed_packs p, json_each(CASE WHEN p.earlier LIKE '[[%]]' THEN p.earlier ELSE '[]' END) e
    WHERE p.num > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0)
        AND p.num - json_array_length(p.earlier) + e.key > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0);

-- The same for the log of counters: a tenant whose newest counters were missing would be let past its limit.
DROP VIEW tenant_counters;
DROP VIEW logged_counters;
CREATE VIEW logged_counters AS
SELECT tenant, active_runs, queued_runs, rate_full_at FROM (
    SELECT e.value ->> 0 AS tenant, e.value ->> 1 AS active_runs, e.value ->> 2 AS queued_runs,
        e.value ->> 3 AS rate_full_at, row_number() OVER (PARTITION BY e.value ->> 0 ORDER BY l.num DESC) AS age
    FROM counter_log l, json_each(CASE WHEN l.counters LIKE '[[%]]' AND trim(l.counters, '0123456789,-[]') = ''
        THEN l.counters ELSE '[]' END) e
) AS entries WHERE age = 1;

CREATE VIEW tenant_counters AS
SELECT t.num AS tenant, t.id AS id, COALESCE(l.active_runs, t.active_runs) AS active_runs,
    COALESCE(l.queued_runs, t.queued_runs) AS queued_runs, COALESCE(l.rate_full_at, t.rate_full_at) AS rate_full_at
FROM tenants t LEFT JOIN logged_counters l ON l.tenant = t.num;
