-- Locks of running tasks that have to be prolonged are found by the time until which they are kept.
CREATE INDEX task_calls_kept ON task_calls (kept_until) WHERE settlement IS NULL;
