DELETE FROM service_times WHERE (day, service, primitive, development, provider, measure, bucket) IN (
  SELECT day, service, primitive, development, provider, measure, bucket FROM service_times WHERE day < $1 ORDER BY day LIMIT $2
)
RETURNING day
