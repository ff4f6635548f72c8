-- What became of a job's attempts that were lost: their errors outlive the attempt that follows.
ALTER TABLE jobs ADD COLUMN attempts TEXT; -- a JSON list, see src/engine/attempts.h; null: none was lost
