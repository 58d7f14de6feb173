DELETE FROM quotes WHERE id IN (SELECT id FROM quotes WHERE valid_until <= $1 ORDER BY valid_until LIMIT $2)
RETURNING id
