-- The runs that a run's steps have started, and those that were made by rerunning it. They are tables and not indexes of
-- runs, because most runs are neither and each index costs every start, even if it gets no row.
CREATE TABLE run_children (
    parent INTEGER NOT NULL, -- the num of a run
    run INTEGER NOT NULL,
    PRIMARY KEY (parent, run)
) STRICT, WITHOUT ROWID;
INSERT INTO run_children (parent, run) SELECT parent_run, num FROM runs WHERE parent_run IS NOT NULL;

CREATE TABLE run_reruns (
    rerun_of BLOB NOT NULL, -- the id of a run
    run INTEGER NOT NULL,
    PRIMARY KEY (rerun_of, run)
) STRICT, WITHOUT ROWID;
INSERT INTO run_reruns (rerun_of, run) SELECT rerun_of, num FROM runs WHERE rerun_of IS NOT NULL;
