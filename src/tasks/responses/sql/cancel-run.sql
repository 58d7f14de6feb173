UPDATE kept_responses SET run = 'cancelling' WHERE id = $1 AND run IN ('queued', 'in_progress') RETURNING id
