-- What a commit changes in the counters of tenants is in the last pack that it adds to the feed (docs/adr/062), as the text that
-- counter_log had. Packs above the mark are the log; a fold writes the tenants' rows and moves the mark to the end of the feed.
UPDATE tenants SET active_runs = c.active_runs, queued_runs = c.queued_runs, rate_full_at = c.rate_full_at
    FROM (SELECT * FROM tenant_counters WHERE tenant IN (SELECT tenant FROM logged_counters)) AS c
    WHERE c.tenant = tenants.num AND c.active_runs >= 0 AND c.queued_runs >= 0;

DROP VIEW tenant_counters;
DROP VIEW logged_counters;
DROP VIEW counter_lists;
DROP TABLE counter_log;

ALTER TABLE feed_packs ADD COLUMN counters TEXT; -- [[tenant, active_runs, queued_runs, rate_full_at], ...]; null: none changed

INSERT INTO indexed (name, through) VALUES ('counters', (SELECT COALESCE(max(num), 0) FROM
    (SELECT max(num) AS num FROM feed_packs UNION ALL SELECT through FROM feed_marks WHERE name = 'swept') AS ends));

-- As 026 has it, where it is explained.
CREATE VIEW counter_lists (num, counters) AS
    SELECT num, CASE WHEN trim(numbers, '0123456789,') = '' AND numbers NOT LIKE '%,,%'
        AND replace(replace(numbers, ',', ',,'), ',0,', '') NOT LIKE '%,0%' THEN counters ELSE '[]' END
    FROM (
        SELECT num, counters, replace(',' || replace(substr(counters, 3,
            CASE WHEN counters LIKE '[[%]]' THEN length(counters) - 4 ELSE 0 END), '],[', ',') || ',', ',-', ',') AS numbers
        FROM feed_packs
        WHERE num > COALESCE((SELECT through FROM indexed WHERE name = 'counters'), 0) AND counters IS NOT NULL
    ) AS logged;

-- The newest entry of each tenant that the log has. A damaged text has none; the doctor finds it.
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

-- The counters of every tenant as they are.
CREATE VIEW tenant_counters AS
SELECT t.num AS tenant, t.id AS id, COALESCE(l.active_runs, t.active_runs) AS active_runs,
    COALESCE(l.queued_runs, t.queued_runs) AS queued_runs, COALESCE(l.rate_full_at, t.rate_full_at) AS rate_full_at
FROM tenants t LEFT JOIN logged_counters l ON l.tenant = t.num;
