-- What was taken out of one source, but for what was given back.
SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) AS amount FROM withdrawals
WHERE source = $1 AND created_at > $2 AND state IN ('debited', 'queued', 'signed', 'paid')
