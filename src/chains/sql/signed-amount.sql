-- Each signed withdrawal has a next look, so the query can use the index of next_look_at.
SELECT CAST(COALESCE(SUM(amount - fee), 0) AS BIGINT) AS amount FROM withdrawals WHERE network = $1 AND state = 'signed' AND next_look_at IS NOT NULL
