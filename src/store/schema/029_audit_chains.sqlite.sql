-- Chains of the audit trail that came with the rows of other shards. A tenant had a chain in its own shard and one in shard 0, with the
-- changes of its keys; in one store its own goes on, and the others stay as they are beside it. Their entries have the number of the
-- chain in place of the tenant's, in audit and in audit_heads: no tenant has that number, nor gets it.
CREATE TABLE audit_chains (
    chain INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL, -- whose it is; 0: the server's
    hashed_as INTEGER NOT NULL -- the tenant's number where it was written, which its hashes cover
) STRICT;
CREATE INDEX audit_chains_of_tenant ON audit_chains (tenant, chain);
