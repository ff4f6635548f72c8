-- As 029 of SQLite, where it is explained.
CREATE TABLE audit_chains (
    chain bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    hashed_as bigint NOT NULL
);
CREATE INDEX audit_chains_of_tenant ON audit_chains (tenant, chain);
