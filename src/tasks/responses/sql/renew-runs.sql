-- $1: JSON array of ids.
UPDATE kept_responses SET run_until = $2, expires_at = $3
WHERE run IN ('queued', 'in_progress', 'cancelling') AND id IN (SELECT value FROM json_each($1))
