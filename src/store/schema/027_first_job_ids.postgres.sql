-- As 027 of SQLite, where it is explained.
CREATE VIEW first_timeline_rows (run, seq, at, data) AS
    SELECT num, first_seq, created_at,
        CASE WHEN substr(first_events, 1, 16) <> '[["run.created"]' THEN first_events
            ELSE '[["run.created",{"workflow_id":"' || workflow_id || '","workflow_version":' || workflow_version
                || ',"created_by":"' || created_by || '"}'
                || CASE WHEN substr(first_events, strpos(first_events, '{'), 12) = '{"job_id":""'
                    THEN substr(first_events, 16, strpos(first_events, '{') - 5)
                        || encode(substr(id, 1, 4), 'hex') || '-' || encode(substr(id, 5, 2), 'hex') || '-'
                        || encode(substr(id, 7, 2), 'hex') || '-8000-0040' || encode(substr(id, 13, 4), 'hex')
                        || substr(first_events, strpos(first_events, '{') + 11)
                    ELSE substr(first_events, 16) END
        END
    FROM runs WHERE first_seq IS NOT NULL;

CREATE OR REPLACE VIEW timeline_rows (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline
    UNION ALL
    SELECT run, seq, at, '', data, NULL, NULL FROM first_timeline_rows;

CREATE OR REPLACE VIEW events (run, seq, at, type, data, job, published_as) AS
    SELECT run, seq, at, type, data, job, published_as FROM timeline WHERE type <> ''
    UNION ALL
    SELECT t.run, t.seq - json_array_length(t.data::json) + 1 + e.key, t.at, e.value ->> 0, (e.value -> 1)::text,
        json_whole(e.value, 2), e.value ->> 3
    FROM timeline t, json_elements(t.data) e WHERE t.type = ''
    UNION ALL
    SELECT t.run, e.key + 1, t.at, e.value ->> 0, (e.value -> 1)::text, json_whole(e.value, 2), e.value ->> 3
    FROM first_timeline_rows t, json_elements(t.data) e;
