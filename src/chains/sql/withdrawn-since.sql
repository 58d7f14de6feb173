-- The sum taken from one source, without the withdrawals that were given back.
SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) AS amount FROM withdrawals
WHERE source = $1 AND created_at > $2 AND state IN ('debited', 'queued', 'signed', 'paid')
