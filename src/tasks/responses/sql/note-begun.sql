UPDATE kept_responses SET run = 'in_progress' WHERE id = $1 AND run = 'queued'
