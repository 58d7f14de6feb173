UPDATE kept_responses SET response = CAST($2 AS TEXT), bytes = bytes - length(response) + length(CAST($2 AS TEXT))
WHERE id = $1 AND run = 'cancelling' RETURNING id
