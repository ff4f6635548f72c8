-- A shard can have several tenants that were moved to it.
ALTER TABLE moved_tenants DROP CONSTRAINT moved_tenants_shard_key;
