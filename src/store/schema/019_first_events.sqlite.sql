-- The first row of a run's timeline is part of the run's row (docs/adr/044): its events, packed, and the number of the last
-- one. Both are null in runs of earlier versions, whose timelines have all their rows.
ALTER TABLE runs ADD COLUMN first_seq INTEGER;
ALTER TABLE runs ADD COLUMN first_events TEXT;

-- All rows of timelines.
CREATE VIEW timeline_rows (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline
    UNION ALL
    SELECT num, first_seq, created_at, '', first_events, NULL, NULL FROM runs WHERE first_seq IS NOT NULL;

DROP VIEW events;
CREATE VIEW events (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline WHERE type <> ''
    UNION ALL
    SELECT t.run, t.seq - json_array_length(t.data) + 1 + e.key, t.at, e.value ->> 0, e.value -> 1, e.value ->> 2, e.value ->> 3
    FROM timeline t, json_each(CASE WHEN json_valid(t.data) THEN t.data ELSE '[]' END) e WHERE t.type = ''
    UNION ALL
    SELECT r.num, e.key + 1, r.created_at, e.value ->> 0, e.value -> 1, e.value ->> 2, e.value ->> 3
    FROM runs r, json_each(CASE WHEN json_valid(r.first_events) THEN r.first_events ELSE '[]' END) e;
