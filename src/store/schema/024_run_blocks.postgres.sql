-- As 024 of SQLite, where it is explained.
ALTER TABLE runs_index RENAME TO run_blocks;
ALTER TABLE run_blocks ADD COLUMN runs text COLLATE "C";

CREATE VIEW runs_index (tenant, num) AS
    SELECT tenant, num FROM run_blocks WHERE runs IS NULL
    UNION ALL
    SELECT b.tenant, b.num + CASE WHEN e.value ~ '^[0-9]{1,18}$' THEN e.value::bigint END
    FROM run_blocks b, regexp_split_to_table(trim(b.runs, ','), ',') AS e (value) WHERE e.value ~ '^[0-9]{1,18}$';
