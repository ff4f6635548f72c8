-- The runs that a run's steps have started, and those that were made by rerunning it: see 020_run_families.sqlite.sql.
CREATE TABLE run_children (
    parent bigint,
    run bigint,
    PRIMARY KEY (parent, run)
);
INSERT INTO run_children (parent, run) SELECT parent_run, num FROM runs WHERE parent_run IS NOT NULL;

CREATE TABLE run_reruns (
    rerun_of bytea,
    run bigint,
    PRIMARY KEY (rerun_of, run)
);
INSERT INTO run_reruns (rerun_of, run) SELECT rerun_of, num FROM runs WHERE rerun_of IS NOT NULL;
