DELETE FROM usage_days WHERE (account, day, key, primitive, service, provider) IN (
  SELECT account, day, key, primitive, service, provider FROM usage_days WHERE day < $1 ORDER BY day LIMIT $2
)
RETURNING day
