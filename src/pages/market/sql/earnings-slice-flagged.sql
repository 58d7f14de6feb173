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
