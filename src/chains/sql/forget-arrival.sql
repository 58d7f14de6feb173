UPDATE treasury_acts SET deposit = NULL, updated_at = $3 WHERE id = $1 AND deposit = $2 AND state <> 'done' RETURNING id
