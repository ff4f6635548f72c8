-- The tracestate that came with the traceparent of the start, passed on with it; null: none.
ALTER TABLE runs ADD COLUMN tracestate TEXT;
