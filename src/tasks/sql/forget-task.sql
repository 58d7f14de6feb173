-- A task that runs, or of which a call is not settled, stays. The task's calls are deleted with it; the ledger keeps them.
DELETE FROM tasks
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NOT NULL AND open = 0
RETURNING task_id
