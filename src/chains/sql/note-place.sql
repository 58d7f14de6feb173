-- The chain has another place for it now, or the same.
UPDATE deposits SET transaction_id = $2, event = $3, height = $4, updated_at = $5
WHERE id = $1 AND state IN ('crediting', 'credited', 'final') AND (event <> $3 OR height <> $4)
RETURNING id
