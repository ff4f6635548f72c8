-- As 026 of SQLite, where it is explained.
ALTER TABLE feed RENAME TO feed_packs;
ALTER TABLE feed_packs ADD COLUMN earlier text COLLATE "C";

CREATE VIEW feed (num, tenant, run, first_seq, last_seq, at, pack) AS
    SELECT num, tenant, run, first_seq, last_seq, at, num FROM feed_packs
    UNION ALL
    SELECT p.num - json_array_length(p.earlier::json) + e.key, json_whole(e.value, 0), p.run + json_whole(e.value, 1),
        json_whole(e.value, 2), json_whole(e.value, 3), p.at, p.num
    FROM feed_packs p, json_elements(p.earlier) e;

CREATE VIEW owners_ahead (run) AS
    SELECT run FROM feed_packs WHERE num > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0)
    UNION ALL
    SELECT p.run + json_whole(e.value, 1) FROM feed_packs p, json_elements(p.earlier) e
    WHERE p.num > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0)
        AND p.num - json_array_length(p.earlier::json) + e.key
            > COALESCE((SELECT through FROM indexed WHERE name = 'timers'), 0);
