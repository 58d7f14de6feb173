-- $1: ids, see listParam.
UPDATE kept_responses SET run_until = $2, expires_at = CASE WHEN run = 'deleting' THEN expires_at ELSE $3 END
WHERE run IN ('queued', 'in_progress', 'cancelling', 'deleting') AND id IN (SELECT value ->> 0 FROM json_each($1))
