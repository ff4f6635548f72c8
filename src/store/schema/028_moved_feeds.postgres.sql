-- As 028 of SQLite, where the columns are explained.
CREATE TABLE moved_feeds (
    tenant bigint PRIMARY KEY,
    shift bigint NOT NULL,
    since bigint NOT NULL,
    swept bigint NOT NULL,
    published bigint NOT NULL,
    fanned bigint NOT NULL,
    fanned_seq bigint NOT NULL
);
