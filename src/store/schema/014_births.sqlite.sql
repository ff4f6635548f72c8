-- The answer of a start is rendered again from its run and the facts of its birth (docs/adr/034).
ALTER TABLE idempotency ADD COLUMN born TEXT; -- null: body has the answer
-- The record of the key that the run was started with: the answer is kept there before the run is
-- removed.
ALTER TABLE runs ADD COLUMN key_num INTEGER;
