-- The index of idempotency keys: sealed segments of sorted hashes (docs/adr/033). It is filled from
-- the rows when the server starts; their column key_hash is used no more.
DROP TABLE idempotency_index;
UPDATE indexed SET through = 0 WHERE name = 'idempotency';

CREATE TABLE key_segments (
    id INTEGER PRIMARY KEY,
    state TEXT NOT NULL, -- live; building: being merged; dead: its rows are being removed
    entries INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    lines INTEGER NOT NULL -- of the filter, 64 bytes each; 0: there is none
) STRICT;

-- num: the segment's id times 2^24, plus the place within it.
CREATE TABLE key_blocks (
    num INTEGER PRIMARY KEY,
    entries BLOB NOT NULL -- hash and row of each key, sorted, 8 + 8 bytes; then a checksum
) STRICT;

CREATE TABLE key_filters (
    num INTEGER PRIMARY KEY,
    bits BLOB NOT NULL
) STRICT;
