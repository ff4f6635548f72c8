-- The index of runs is made of blocks (src/store/run/run_blocks.h): a row has several runs of a tenant. A row of earlier
-- versions is a block of one run.
ALTER TABLE runs_index RENAME TO run_blocks;
ALTER TABLE run_blocks ADD COLUMN runs TEXT;

-- Run by run, for people, for the doctor and for tests.
CREATE VIEW runs_index (tenant, num) AS
    SELECT tenant, num FROM run_blocks WHERE runs IS NULL
    UNION ALL
    SELECT b.tenant, b.num + e.value FROM run_blocks b, json_each('[' || trim(b.runs, ',') || ']') e
    WHERE trim(b.runs, '0123456789,') = '' AND b.runs LIKE ',%_,' AND b.runs NOT LIKE '%,,%';
