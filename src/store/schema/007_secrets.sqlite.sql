-- Random keys of this store, made when it is first opened: what is signed with one cannot be computed from what clients see.
CREATE TABLE secrets (
    name TEXT PRIMARY KEY, -- lease: tokens of leases
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
