UPDATE kept_responses SET response = CAST($2 AS TEXT), bytes = bytes - length(response) + length(CAST($2 AS TEXT)), expires_at = $3, held_until = $4,
  run = 'lost', run_until = NULL
WHERE id = $1 AND run IN ('queued', 'in_progress', 'cancelling') AND run_until <= $5 RETURNING id
