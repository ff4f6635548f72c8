-- What happened in each minute of the last day, of each tenant that had traffic in it; tenant 0 is all of them together.
-- Counted in memory and written when the minute is over (docs/adr/042).
CREATE TABLE minutes (
    tenant INTEGER NOT NULL,
    minute INTEGER NOT NULL, -- since 1970
    starts INTEGER NOT NULL, -- runs that were made
    succeeded INTEGER NOT NULL, -- runs that ended
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    timed_out INTEGER NOT NULL,
    replays INTEGER NOT NULL, -- starts that were answered from their key
    mismatches INTEGER NOT NULL, -- starts whose key belongs to another request
    refused INTEGER NOT NULL, -- starts that met a limit: 429
    waits TEXT, -- JSON: how many queued runs waited up to 1, 2, 4, 8 ... ms for their slots; null: none
    PRIMARY KEY (tenant, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX minutes_by_age ON minutes (minute);
