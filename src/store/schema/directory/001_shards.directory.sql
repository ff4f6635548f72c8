-- The directory of a store on PostgreSQL: which shards there are, and who owns them.
CREATE TABLE directory (
    version bigint NOT NULL
);
INSERT INTO directory (version) VALUES (0);

-- One row per shard, whose tables are in a schema of their own. Whoever takes a shard raises its epoch.
CREATE TABLE shards (
    shard bigint PRIMARY KEY,
    version bigint NOT NULL, -- of its schema
    epoch bigint NOT NULL,
    owner text COLLATE "C" -- host and process, for people
);
INSERT INTO shards (shard, version, epoch) VALUES (0, 0, 0);

-- The first statement of every transaction that writes to a shard. Holds off a new owner until the transaction is over, and
-- ends it if there is one already. Returns the transaction's number.
CREATE FUNCTION fence(of_shard bigint, wanted bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found_epoch bigint;
BEGIN
    SELECT epoch INTO found_epoch FROM shards WHERE shard = of_shard FOR SHARE;
    IF found_epoch IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION 'shard % has another owner: its epoch is %, not %', of_shard, found_epoch, wanted
            USING ERRCODE = 'PW001';
    END IF;
    RETURN pg_current_xact_id()::text::bigint;
END $$;
