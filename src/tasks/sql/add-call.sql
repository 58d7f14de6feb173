INSERT INTO task_calls (call_id, primitive, task_id, service, position, price, created_at, kept_until, most)
SELECT $7, primitive, task_id, service, calls, $8, $9, $10, $11 FROM tasks
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND account = $4 AND (CAST($5 AS TEXT) IS NULL OR run = $5) AND offer_id = $6 AND ended_at IS NULL
ON CONFLICT (call_id) DO NOTHING
