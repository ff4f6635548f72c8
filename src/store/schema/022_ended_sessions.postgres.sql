-- Sessions that were signed out before their time: see 022_ended_sessions.sqlite.sql.
CREATE TABLE ended_sessions (
    id bytea PRIMARY KEY,
    expires_at bigint NOT NULL
);
CREATE INDEX ended_sessions_by_expiry ON ended_sessions (expires_at);
