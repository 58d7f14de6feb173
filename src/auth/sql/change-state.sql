-- Changes the state of account $1 from $2 to $3, with the reason $4 at the time $5.
UPDATE consumers SET state = $3, state_reason = $4, state_at = $5 WHERE account = $1 AND state = $2 RETURNING *
