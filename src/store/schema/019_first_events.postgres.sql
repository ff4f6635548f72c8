-- As 019 of SQLite, where the columns are explained.
ALTER TABLE runs ADD COLUMN first_seq bigint;
ALTER TABLE runs ADD COLUMN first_events text COLLATE "C";

CREATE VIEW timeline_rows (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline
    UNION ALL
    SELECT num, first_seq, created_at, '', first_events, NULL, NULL FROM runs WHERE first_seq IS NOT NULL;

DROP VIEW events;
CREATE VIEW events (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline WHERE type <> ''
    UNION ALL
    SELECT t.run, t.seq - json_array_length(t.data::json) + 1 + e.key, t.at, e.value ->> 0, (e.value -> 1)::text,
        json_whole(e.value, 2), e.value ->> 3
    FROM timeline t, json_elements(t.data) e WHERE t.type = ''
    UNION ALL
    SELECT r.num, e.key + 1, r.created_at, e.value ->> 0, (e.value -> 1)::text, json_whole(e.value, 2), e.value ->> 3
    FROM runs r, json_elements(r.first_events) e;
