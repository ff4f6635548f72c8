-- What an operation tells of a run or an entity is one row (src/store/run/events.h). Rows that are there stay as they are:
-- they have a type of their own.
ALTER TABLE events RENAME TO timeline;

-- Event by event, for people, for the doctor and for tests.
CREATE VIEW events (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline WHERE type <> ''
    UNION ALL
    SELECT t.run, t.seq - json_array_length(t.data) + 1 + e.key, t.at, e.value ->> 0, e.value -> 1, e.value ->> 2, e.value ->> 3
    FROM timeline t, json_each(CASE WHEN json_valid(t.data) THEN t.data ELSE '[]' END) e WHERE t.type = '';
