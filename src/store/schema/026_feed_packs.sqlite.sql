-- What a commit adds to the feed is one row, a pack (src/store/outbox/feed.h): the last row of the feed in its columns, and those
-- before it as text. A row of an earlier version is a pack of one.
ALTER TABLE feed RENAME TO feed_packs;
ALTER TABLE feed_packs ADD COLUMN earlier TEXT; -- [[tenant, distance of its run from this one, first_seq, last_seq], ...]

-- The rows before the last one of each pack as JSON: lists of numbers, none of a damaged pack, which the doctor finds by the same
-- signs (LISTS_ARE_DAMAGED). Not json_valid(): without memory it says no, and rows would be missing.
CREATE VIEW pack_lists (num, run, at, earlier) AS
    SELECT num, run, at, CASE WHEN trim(numbers, '0123456789,') = '' AND numbers NOT LIKE '%,,%'
        AND replace(replace(numbers, ',', ',,'), ',0,', '') NOT LIKE '%,0%' THEN earlier ELSE '[]' END
    FROM (
        SELECT num, run, at, earlier, replace(',' || replace(substr(earlier, 3,
            CASE WHEN earlier LIKE '[[%]]' THEN length(earlier) - 4 ELSE 0 END), '],[', ',') || ',', ',-', ',') AS numbers
        FROM feed_packs
    ) AS packs;

-- Row by row, with the pack of each, for people and for tests.
CREATE VIEW feed (num, tenant, run, first_seq, last_seq, at, pack) AS
    SELECT num, tenant, run, first_seq, last_seq, at, num FROM feed_packs
    UNION ALL
    SELECT p.num - json_array_length(p.earlier) + e.key, e.value ->> 0, p.run + (e.value ->> 1), e.value ->> 2, e.value ->> 3, p.at,
        p.num
    FROM pack_lists p, json_each(p.earlier) e;

-- The runs and entities whose timers may be in memory only (src/store/run/timers.h): those with a row above the mark.
CREATE VIEW owners_ahead (run) AS
    SELECT run FROM feed_packs WHERE num > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0)
    UNION ALL
    SELECT p.run + (e.value ->> 1) FROM pack_lists p, json_each(p.earlier) e
    WHERE p.num > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0)
        AND p.num - json_array_length(p.earlier) + e.key > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0);

-- The same for the log of counters: a tenant whose newest counters were missing would be let past its limit.
DROP VIEW tenant_counters;
DROP VIEW logged_counters;
CREATE VIEW counter_lists (num, counters) AS
    SELECT num, CASE WHEN trim(numbers, '0123456789,') = '' AND numbers NOT LIKE '%,,%'
        AND replace(replace(numbers, ',', ',,'), ',0,', '') NOT LIKE '%,0%' THEN counters ELSE '[]' END
    FROM (
        SELECT num, counters, replace(',' || replace(substr(counters, 3,
            CASE WHEN counters LIKE '[[%]]' THEN length(counters) - 4 ELSE 0 END), '],[', ',') || ',', ',-', ',') AS numbers
        FROM counter_log
    ) AS logged;

CREATE VIEW logged_counters AS
SELECT tenant, active_runs, queued_runs, rate_full_at FROM (
    SELECT tenant, active_runs, queued_runs, rate_full_at, row_number() OVER (PARTITION BY tenant ORDER BY num DESC) AS age
    FROM (
        SELECT l.num, e.value ->> 0 AS tenant, iif(typeof(e.value ->> 1) = 'integer', e.value ->> 1, NULL) AS active_runs,
            iif(typeof(e.value ->> 2) = 'integer', e.value ->> 2, NULL) AS queued_runs,
            iif(typeof(e.value ->> 3) = 'integer', e.value ->> 3, NULL) AS rate_full_at
        FROM counter_lists l, json_each(l.counters) e
    ) AS numbers -- one that is too large for a column is null
) AS entries WHERE age = 1;

CREATE VIEW tenant_counters AS
SELECT t.num AS tenant, t.id AS id, COALESCE(l.active_runs, t.active_runs) AS active_runs,
    COALESCE(l.queued_runs, t.queued_runs) AS queued_runs, COALESCE(l.rate_full_at, t.rate_full_at) AS rate_full_at
FROM tenants t LEFT JOIN logged_counters l ON l.tenant = t.num;
