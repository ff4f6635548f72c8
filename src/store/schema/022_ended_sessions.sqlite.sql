-- Sessions that were signed out before their time, until then (docs/adr/039).
CREATE TABLE ended_sessions (
    id BLOB PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_sessions_by_expiry ON ended_sessions (expires_at);
