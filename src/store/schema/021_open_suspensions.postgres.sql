-- Jobs that wait within a durable function, the newest first, to be counted by queue.
CREATE INDEX suspensions_open ON suspensions (run, ordinal) WHERE resumed_by IS NULL;
