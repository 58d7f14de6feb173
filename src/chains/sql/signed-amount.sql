-- Each of them has a next look, by whose index they are found.
SELECT CAST(COALESCE(SUM(amount - fee), 0) AS BIGINT) AS amount FROM withdrawals WHERE network = $1 AND state = 'signed' AND next_look_at IS NOT NULL
