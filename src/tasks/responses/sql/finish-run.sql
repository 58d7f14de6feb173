-- Also for a response that counts as lost: its gateway was only out of reach.
UPDATE kept_responses SET response = CAST($2 AS TEXT), bytes = bytes - length(response) + length(CAST($2 AS TEXT)), expires_at = $3, held_until = $4,
  run = NULL, run_until = NULL
WHERE id = $1 AND run <> 'deleting' RETURNING id
