-- Days of services with fewer users than $5. $3: as in market-by-day. $4: an account that does not count. $6, $7: only
-- this primitive and service; empty for all.
SELECT DISTINCT day, primitive, service FROM service_days
WHERE day BETWEEN $1 AND $2 AND development <= $3 AND ($6 = '' OR (service = $7 AND primitive = $6)) AND (day, primitive, service) NOT IN (
  SELECT day, primitive, service FROM usage_days
  WHERE day BETWEEN $1 AND $2 AND requests > 0 AND account <> $4 AND ($6 = '' OR (service = $7 AND primitive = $6))
  GROUP BY day, primitive, service HAVING COUNT(DISTINCT account) >= $5
)
