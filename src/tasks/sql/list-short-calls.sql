-- Open calls of running tasks whose locks end between $1 and $2, and before their task. The bounds keep the search small.
SELECT c.call_id, t.created_at, t.expires_at
FROM task_calls c JOIN tasks t ON t.primitive = c.primitive AND t.task_id = c.task_id AND t.service = c.service
WHERE c.settlement IS NULL AND c.kept_until >= $1 AND c.kept_until <= $2 AND t.ended_at IS NULL AND c.kept_until < t.expires_at
ORDER BY c.kept_until LIMIT $3
