DELETE FROM contexts WHERE used_at <= $1 AND (primitive, service, context_id) IN (
  SELECT primitive, service, context_id FROM contexts WHERE used_at <= $1 ORDER BY used_at LIMIT $2
)
RETURNING context_id
