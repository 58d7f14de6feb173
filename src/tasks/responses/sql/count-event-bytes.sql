UPDATE kept_responses SET bytes = bytes + $2 WHERE id = $1 AND run IN ('queued', 'in_progress', 'cancelling') AND run_until <= $3
