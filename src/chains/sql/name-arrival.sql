UPDATE treasury_acts SET deposit = $2, updated_at = $3 WHERE id = $1 AND kind = 'move' AND deposit IS NULL AND state IN ('sending', 'sent') RETURNING id
