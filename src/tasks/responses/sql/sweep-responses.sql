-- One that was deleted counts as under way until its call is settled.
DELETE FROM kept_responses WHERE id IN (
  SELECT id FROM kept_responses WHERE expires_at <= $1 AND (run IS NULL OR run <> 'deleting') ORDER BY expires_at LIMIT $2
) RETURNING id
