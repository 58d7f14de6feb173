-- After a reorganization the event may be at another height or in another transaction.
UPDATE deposits SET transaction_id = $2, event = $3, height = $4, updated_at = $5
WHERE id = $1 AND state IN ('crediting', 'credited', 'final') AND (event <> $3 OR height <> $4)
RETURNING id
