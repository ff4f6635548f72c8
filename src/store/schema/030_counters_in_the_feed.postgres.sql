-- As 030 of SQLite, where it is explained.
UPDATE tenants SET active_runs = c.active_runs, queued_runs = c.queued_runs, rate_full_at = c.rate_full_at
    FROM (SELECT * FROM tenant_counters WHERE tenant IN (SELECT tenant FROM logged_counters)) AS c
    WHERE c.tenant = tenants.num AND c.active_runs >= 0 AND c.queued_runs >= 0;

DROP VIEW tenant_counters;
DROP VIEW logged_counters;
DROP TABLE counter_log;

ALTER TABLE feed_packs ADD COLUMN counters text COLLATE "C";

INSERT INTO indexed (name, through) VALUES ('counters', (SELECT COALESCE(max(num), 0) FROM
    (SELECT max(num) AS num FROM feed_packs UNION ALL SELECT through FROM feed_marks WHERE name = 'swept') AS ends));

CREATE VIEW counter_lists (num, counters) AS
    SELECT num, counters FROM feed_packs
    WHERE num > COALESCE((SELECT through FROM indexed WHERE name = 'counters'), 0) AND counters IS NOT NULL;

CREATE VIEW logged_counters AS
SELECT tenant, active_runs, queued_runs, rate_full_at FROM (
    SELECT json_whole(e.value, 0) AS tenant, json_whole(e.value, 1) AS active_runs, json_whole(e.value, 2) AS queued_runs,
        json_whole(e.value, 3) AS rate_full_at,
        row_number() OVER (PARTITION BY json_whole(e.value, 0) ORDER BY l.num DESC) AS age
    FROM counter_lists l, json_elements(l.counters) e
) AS entries WHERE age = 1;

CREATE VIEW tenant_counters AS
SELECT t.num AS tenant, t.id AS id, COALESCE(l.active_runs, t.active_runs) AS active_runs,
    COALESCE(l.queued_runs, t.queued_runs) AS queued_runs, COALESCE(l.rate_full_at, t.rate_full_at) AS rate_full_at
FROM tenants t LEFT JOIN logged_counters l ON l.tenant = t.num;
