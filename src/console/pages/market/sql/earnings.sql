-- name: earningsSlice
-- Settled calls of a provider by day, service and primitive. lock_detail begins with the primitive
-- ({"primitive":"model"), so grouping by its first characters needs no parsing of JSON.
SELECT day, service, opening, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(earned) AS BIGINT) AS earned, CAST(SUM(flagged) AS BIGINT) AS flagged
FROM (
  SELECT resolved_at / 86400000 AS day, price, SUBSTR(lock_detail, 1, 20) AS opening, COUNT(*) AS requests, SUM(charged - fee) AS earned,
    COUNT(CASE WHEN detail NOT LIKE '%"flags":[]%' THEN 1 END) AS flagged
  FROM locks
  WHERE provider = $1 AND resolved_at >= $2 AND resolved_at < $3
  GROUP BY resolved_at / 86400000, price, SUBSTR(lock_detail, 1, 20)
) AS priced
LEFT JOIN prices ON prices.id = priced.price
GROUP BY day, service, opening

-- name: earningsSliceEnd
-- The time at which the first call after the next $4 calls was settled. No row if fewer calls are left. The index alone
-- answers this.
SELECT resolved_at FROM locks
WHERE provider = $1 AND resolved_at >= $2 AND resolved_at < $3
ORDER BY resolved_at LIMIT 1 OFFSET $4

-- name: earningsSliceFlagged
-- The same calls as in earnings-slice, but only those whose flags match $4.
SELECT day, service, opening, CAST(SUM(requests) AS BIGINT) AS requests
FROM (
  SELECT resolved_at / 86400000 AS day, price, SUBSTR(lock_detail, 1, 20) AS opening, COUNT(*) AS requests
  FROM locks
  WHERE provider = $1 AND resolved_at >= $2 AND resolved_at < $3 AND detail LIKE $4 ESCAPE '\'
  GROUP BY resolved_at / 86400000, price, SUBSTR(lock_detail, 1, 20)
) AS priced
LEFT JOIN prices ON prices.id = priced.price
GROUP BY day, service, opening

-- name: archivedEarnings
-- What a provider earned with calls that are in archives. `flags` is a JSON object of counts.
SELECT day, service, opening, requests, earned, flags FROM archived_earnings
WHERE provider = $1 AND day >= $2 AND day < $3 AND archive <= (SELECT MAX(number) FROM archives)

-- name: undroppedUntil
-- The end of an archive whose calls are being dropped; 0 if there is none.
SELECT COALESCE(MAX(ends_at), 0) AS until FROM archives WHERE dropped_at IS NULL
