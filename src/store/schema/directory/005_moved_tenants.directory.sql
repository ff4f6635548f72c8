-- Tenants that were moved to a shard of their own.

-- How many shards, from 0 on, tenants are spread over by their names; NULL: all. The others are spare: each can get one tenant.
ALTER TABLE directory ADD COLUMN hashed bigint;

-- A node that has asked for the shard, to move a tenant: as long as its lease lives, the owner gives the shard up and no other takes it.
ALTER TABLE shards ADD COLUMN wanted_by text COLLATE "C";

-- Where a moved tenant is. The row is written in the transaction that moves its rows.
CREATE TABLE moved_tenants (
    tenant text COLLATE "C" PRIMARY KEY,
    shard bigint NOT NULL UNIQUE
);
