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
