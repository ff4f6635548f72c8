-- Whose a timer is, so that the timers of one tenant do not hold up those of the others.
ALTER TABLE timers ADD COLUMN tenant INTEGER NOT NULL DEFAULT 0; -- 0: not known
UPDATE timers SET tenant = COALESCE(
    (SELECT tenant FROM runs WHERE num = timers.run), (SELECT tenant FROM entities WHERE num = timers.run), 0);
