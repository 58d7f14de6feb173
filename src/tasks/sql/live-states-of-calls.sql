-- The states of an account's running tasks, by call. $1: ids of calls, see listParam.
SELECT task_calls.call_id, tasks.state FROM task_calls
JOIN tasks ON tasks.primitive = task_calls.primitive AND tasks.task_id = task_calls.task_id AND tasks.service = task_calls.service
WHERE task_calls.call_id IN (SELECT value ->> 0 FROM json_each($1)) AND tasks.account = $2 AND tasks.ended_at IS NULL
