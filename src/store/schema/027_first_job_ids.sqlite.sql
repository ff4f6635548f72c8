-- The id of a run's first job can be told from the run's. New rows leave it out of their first events, where the first data begin
-- with {"job_id":"", and the views put it back (docs/adr/044). Rows of earlier versions have it, and stay as they are.
DROP VIEW events;
DROP VIEW timeline_rows;

-- The first rows of timelines, which are in the rows of their runs.
CREATE VIEW first_timeline_rows (run, seq, at, data) AS
    SELECT num, first_seq, created_at,
        CASE WHEN substr(first_events, 1, 16) <> '[["run.created"]' THEN first_events
            ELSE '[["run.created",{"workflow_id":"' || workflow_id || '","workflow_version":' || workflow_version
                || ',"created_by":"' || created_by || '"}'
                || CASE WHEN substr(first_events, instr(first_events, '{'), 12) = '{"job_id":""'
                    THEN substr(first_events, 16, instr(first_events, '{') - 5)
                        || lower(hex(substr(id, 1, 4)) || '-' || hex(substr(id, 5, 2)) || '-' || hex(substr(id, 7, 2))
                            || '-8000-0040' || hex(substr(id, 13, 4)))
                        || substr(first_events, instr(first_events, '{') + 11)
                    ELSE substr(first_events, 16) END
        END
    FROM runs WHERE first_seq IS NOT NULL;

CREATE VIEW timeline_rows (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline
    UNION ALL
    SELECT run, seq, at, '', data, NULL, NULL FROM first_timeline_rows;

CREATE VIEW events (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline WHERE type <> ''
    UNION ALL
    SELECT t.run, t.seq - json_array_length(t.data) + 1 + e.key, t.at, e.value ->> 0, e.value -> 1, e.value ->> 2, e.value ->> 3
    FROM timeline t, json_each(CASE WHEN json_valid(t.data) THEN t.data ELSE '[]' END) e WHERE t.type = ''
    UNION ALL
    SELECT t.run, e.key + 1, t.at, e.value ->> 0, e.value -> 1, e.value ->> 2, e.value ->> 3
    FROM first_timeline_rows t, json_each(CASE WHEN json_valid(t.data) THEN t.data ELSE '[]' END) e;
