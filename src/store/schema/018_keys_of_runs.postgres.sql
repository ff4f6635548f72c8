-- As 018 of SQLite, where the columns are explained.
ALTER TABLE idempotency RENAME TO key_records;
ALTER TABLE runs ADD COLUMN key text COLLATE "C";
ALTER TABLE runs ADD COLUMN key_route text COLLATE "C";
ALTER TABLE runs ADD COLUMN key_hashes bytea;
ALTER TABLE runs ADD COLUMN born text COLLATE "C";
ALTER TABLE runs ADD COLUMN key_replays bigint;
ALTER TABLE runs ADD COLUMN key_mismatches bigint;
ALTER TABLE runs ADD COLUMN key_replayed_at bigint;

INSERT INTO indexed (name, through) VALUES ('run_keys', COALESCE((SELECT max(num) FROM runs), 0));

CREATE VIEW idempotency (num, tenant, key, route, run_id, born, replays, mismatches, created_at, expires_at, last_replayed_at) AS
    SELECT num, tenant, key, route, run_id, born, replays, mismatches, created_at, expires_at, last_replayed_at FROM key_records
    UNION ALL
    SELECT -num, tenant, key, COALESCE(key_route, 'POST /api/v1/workflows/' || workflow_id || '/runs'), id, born,
        COALESCE(key_replays, 0), COALESCE(key_mismatches, 0), created_at, NULL, key_replayed_at FROM runs WHERE key IS NOT NULL;
