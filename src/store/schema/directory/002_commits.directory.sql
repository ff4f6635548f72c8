-- The commits of each shard, by number. Whoever has lost a connection looks here for what became of a commit, and whether all that
-- came before is still there: numbers of transactions are given again after a crash. Only the newest are kept.
CREATE TABLE commits (
    shard bigint NOT NULL,
    num bigint NOT NULL,
    PRIMARY KEY (shard, num)
);

-- The first statement of every transaction that will be committed under this number.
CREATE FUNCTION fence(of_shard bigint, wanted bigint, commit_num bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM fence(of_shard, wanted);
    INSERT INTO commits (shard, num) VALUES (of_shard, commit_num);
    IF commit_num % 1000 = 0 THEN
        DELETE FROM commits WHERE shard = of_shard AND num < commit_num - 1000;
    END IF;
END $$;
