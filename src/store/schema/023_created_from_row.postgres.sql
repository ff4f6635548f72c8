-- As 023 of SQLite, where it is explained.
CREATE OR REPLACE VIEW timeline_rows (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline
    UNION ALL
    SELECT num, first_seq, created_at, '',
        CASE WHEN substr(first_events, 1, 16) = '[["run.created"]'
            THEN '[["run.created",{"workflow_id":"' || workflow_id || '","workflow_version":' || workflow_version
                || ',"created_by":"' || created_by || '"}' || substr(first_events, 16)
            ELSE first_events END,
        NULL, NULL
    FROM runs WHERE first_seq IS NOT NULL;

CREATE OR REPLACE VIEW events (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline WHERE type <> ''
    UNION ALL
    SELECT t.run, t.seq - json_array_length(t.data::json) + 1 + e.key, t.at, e.value ->> 0, (e.value -> 1)::text,
        json_whole(e.value, 2), e.value ->> 3
    FROM timeline t, json_elements(t.data) e WHERE t.type = ''
    UNION ALL
    SELECT r.num, e.key + 1, r.created_at, e.value ->> 0,
        CASE WHEN e.key = 0 AND substr(r.first_events, 1, 16) = '[["run.created"]'
            THEN '{"workflow_id":"' || r.workflow_id || '","workflow_version":' || r.workflow_version
                || ',"created_by":"' || r.created_by || '"}'
            ELSE (e.value -> 1)::text END,
        json_whole(e.value, 2), e.value ->> 3
    FROM runs r, json_elements(r.first_events) e;
