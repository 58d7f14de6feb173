UPDATE withdrawals SET handed_out = 0, updated_at = $2, next_look_at = $2
WHERE id = $1 AND handed_out = 1 AND state IN ('requested', 'debited', 'queued', 'signed')
RETURNING id
