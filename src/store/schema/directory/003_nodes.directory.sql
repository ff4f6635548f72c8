-- What a cluster of several nodes needs.

-- What nodes prove to each other that they are of one cluster; and how often API keys have changed, which are in shard 0.
ALTER TABLE directory
    ADD COLUMN secret bytea NOT NULL
        DEFAULT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'),
    ADD COLUMN auth_epoch bigint NOT NULL DEFAULT 0;

-- One row per server. Its lease is renewed by this database's clock; a node whose lease is over can lose its shards.
CREATE TABLE nodes (
    name text COLLATE "C" PRIMARY KEY,
    url text COLLATE "C" NOT NULL, -- where other nodes reach it
    session text COLLATE "C" NOT NULL, -- new with every start
    lease_until timestamptz NOT NULL,
    draining boolean NOT NULL DEFAULT false, -- it gives its shards up and takes none, also after a restart
    stopping boolean NOT NULL DEFAULT false -- it is about to end
);

-- From now on the owner is the name of a node, or a process and its host that has the shard without being one.
UPDATE shards SET owner = NULL;

-- Tells every node that a key was made, changed or revoked, when the transaction commits.
CREATE FUNCTION keys_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE directory SET auth_epoch = auth_epoch + 1;
    PERFORM pg_notify(TG_ARGV[0], 'keys');
    RETURN NULL;
END $$;
