-- What happened in each minute of the last day: see 017_minutes.sqlite.sql.
CREATE TABLE minutes (
    tenant bigint NOT NULL,
    minute bigint NOT NULL,
    starts bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    denied bigint NOT NULL,
    cancelled bigint NOT NULL,
    timed_out bigint NOT NULL,
    replays bigint NOT NULL,
    mismatches bigint NOT NULL,
    refused bigint NOT NULL,
    waits text COLLATE "C",
    PRIMARY KEY (tenant, minute)
);
CREATE INDEX minutes_by_age ON minutes (minute);
