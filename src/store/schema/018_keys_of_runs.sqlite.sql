-- The record of a key that has started a run is in the run's row (docs/adr/043), unless it expires or the answer cannot be
-- made from the run. All other records are in key_records, as before.
ALTER TABLE idempotency RENAME TO key_records;
ALTER TABLE runs ADD COLUMN key TEXT; -- null: none, released, or in key_records
ALTER TABLE runs ADD COLUMN key_route TEXT; -- null: the route of the workflow's runs
ALTER TABLE runs ADD COLUMN key_hashes BLOB; -- the request's fingerprint, 32 bytes, and raw_hash, 8 bytes
ALTER TABLE runs ADD COLUMN born TEXT; -- what the answer says and the run no longer does (docs/adr/034)
ALTER TABLE runs ADD COLUMN key_replays INTEGER; -- null: none
ALTER TABLE runs ADD COLUMN key_mismatches INTEGER;
ALTER TABLE runs ADD COLUMN key_replayed_at INTEGER;

-- Runs above this number may have keys that the index of keys lacks.
INSERT INTO indexed (name, through) VALUES ('run_keys', COALESCE((SELECT max(num) FROM runs), 0));

-- All records, for people, for the doctor and for tests. A record in a run's row has minus its number.
CREATE VIEW idempotency (num, tenant, key, route, run_id, born, replays, mismatches, created_at, expires_at, last_replayed_at) AS
    SELECT num, tenant, key, route, run_id, born, replays, mismatches, created_at, expires_at, last_replayed_at FROM key_records
    UNION ALL
    SELECT -num, tenant, key, COALESCE(key_route, 'POST /api/v1/workflows/' || workflow_id || '/runs'), id, born,
        COALESCE(key_replays, 0), COALESCE(key_mismatches, 0), created_at, NULL, key_replayed_at FROM runs WHERE key IS NOT NULL;
