-- Shards in other databases, of the same server or of others.

-- Where the tables of a shard are; NULL: in this database. Its row over there has the version of its schema, the epoch that fences
-- its transactions, and its commits; the row here has its owner and the epoch by which it was taken.
ALTER TABLE shards ADD COLUMN url text COLLATE "C";

-- A database that has nothing but shards of a cluster whose directory is elsewhere: which one. NULL: this is a directory.
ALTER TABLE directory ADD COLUMN part_of text COLLATE "C";

-- Called by a node that has taken a shard with an epoch of the directory: returns the epoch that its transactions must have. In the
-- directory's own database it is the same row. Elsewhere the row is raised, which waits for the transactions of the last owner. Epochs
-- of a directory are a million apart there, because an owner that connects again raises the row by one, unknown to the directory.
CREATE FUNCTION begin_epoch(of_shard bigint, taken bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT part_of IS NULL FROM directory) THEN
        RETURN taken;
    END IF;
    UPDATE shards SET epoch = taken * 1000000 WHERE shard = of_shard AND epoch < taken * 1000000;
    RETURN taken * 1000000;
END $$;
