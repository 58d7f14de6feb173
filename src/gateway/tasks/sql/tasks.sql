-- name: addCall
INSERT INTO task_calls (call_id, primitive, task_id, service, position, price, created_at, kept_until, most)
SELECT $7, primitive, task_id, service, calls, $8, $9, $10, $11 FROM tasks
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND account = $4 AND (CAST($5 AS TEXT) IS NULL OR run = $5) AND offer_id = $6 AND ended_at IS NULL
ON CONFLICT (call_id) DO NOTHING

-- name: claimContext
-- Returns a row if the owner may use the context: the first user may, and so may the whole account if one of its runs
-- or restricted keys was first. `run` is TaskOwner.within.
INSERT INTO contexts (primitive, service, context_id, account, run, used_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (primitive, service, context_id) DO UPDATE SET used_at = excluded.used_at
WHERE contexts.account = excluded.account AND (excluded.run IS NULL OR contexts.run = excluded.run)
RETURNING account

-- name: claimTasks
-- Claims the tasks that are due the longest, at most $4 per offer. Round robin: every account gets its first one before
-- any account gets its second. An account has 1,000 tasks by default, so the oldest 1,024 are of two at least.
WITH due AS (
  SELECT primitive AS due_primitive, task_id AS due_id, service AS due_service, offer_id AS due_offer, account AS due_account, next_look_at AS due_at
  FROM tasks
  WHERE open = 1 AND next_look_at <= $1 AND claimed_until <= $1 AND offer_id NOT IN (SELECT value FROM json_each($5))
  ORDER BY next_look_at LIMIT 1024
), chosen AS (
  SELECT due_primitive, due_id, due_service
  FROM (
    SELECT due.*, ROW_NUMBER() OVER (PARTITION BY due_account ORDER BY due_at) AS turn,
      ROW_NUMBER() OVER (PARTITION BY due_offer ORDER BY due_at) AS nth
    FROM due
  ) AS ranked
  WHERE nth <= $4 ORDER BY turn, due_at LIMIT $3
)
UPDATE tasks SET claimed_until = $2 FROM chosen
WHERE primitive = due_primitive AND task_id = due_id AND service = due_service
RETURNING primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes

-- name: closeTask
UPDATE tasks SET open = 0
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM task_calls c
  WHERE c.primitive = tasks.primitive AND c.task_id = tasks.task_id AND c.service = tasks.service AND c.settlement IS NULL
)

-- name: countLiveOfAccount
-- The running tasks of an account, and again those of its part $3, at most $2.
SELECT count(*) AS tasks FROM (
  SELECT 1 AS one FROM (SELECT 1 AS one FROM tasks WHERE account = $1 AND open = 1 AND ended_at IS NULL LIMIT $2) AS all_parts
  UNION ALL SELECT 1 FROM tasks
  WHERE account = $1 AND open = 1 AND ended_at IS NULL AND COALESCE(run, '') = COALESCE(CAST($3 AS TEXT), '')
  LIMIT $2
) AS found

-- name: countLiveTasks
SELECT count(*) AS tasks FROM tasks WHERE open = 1 AND ended_at IS NULL

-- name: countTasks
SELECT count(*) AS tasks FROM tasks
WHERE account = $1 AND primitive = $2 AND (CAST($3 AS TEXT) IS NULL OR run = $3) AND (CAST($4 AS TEXT) IS NULL OR service = $4)
  AND (CAST($5 AS TEXT) IS NULL OR context_id = $5) AND (CAST($6 AS TEXT) IS NULL OR state = $6) AND updated_at >= $7

-- name: endTask
-- Only the first end counts, and only if the task is as it was read. If a call was added or output was recorded
-- meanwhile, no row is returned and the caller reads the task again.
UPDATE tasks SET state = $4, context_id = COALESCE($5, context_id), snapshot = COALESCE($6, snapshot), updated_at = $7, ended_at = $7, ending = $8,
  next_look_at = $9, open = CASE WHEN EXISTS (
    SELECT 1 FROM task_calls c
    WHERE c.primitive = tasks.primitive AND c.task_id = tasks.task_id AND c.service = tasks.service AND c.settlement IS NULL
  ) THEN 1 ELSE 0 END
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NULL AND calls = $10 AND expires_at <= $11 AND gave_output = $12
RETURNING primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes

-- name: findTaskOfCall
SELECT tasks.primitive, tasks.task_id, tasks.service, account, run, offer_id, provider, context_id, state, notes, snapshot, tasks.created_at, updated_at,
  expires_at, calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM task_calls
JOIN tasks ON tasks.primitive = task_calls.primitive AND tasks.task_id = task_calls.task_id AND tasks.service = task_calls.service
WHERE task_calls.call_id = $1

-- name: findTask
SELECT primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM tasks WHERE primitive = $1 AND task_id = $2 AND service = $3

-- name: findTasks
SELECT primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM tasks WHERE primitive = $1 AND task_id = $2 AND account = $3 AND (CAST($4 AS TEXT) IS NULL OR run = $4)
ORDER BY service LIMIT $5

-- name: forgetClaims
-- Events during the downtime reached no gateway, so every open task gets a look now.
UPDATE tasks SET claimed_until = 0, next_look_at = CASE WHEN next_look_at > $1 THEN $1 ELSE next_look_at END
WHERE open = 1 AND (claimed_until > 0 OR next_look_at > $1)

-- name: forgetTask
-- A task that runs, or of which a call is not settled, stays. The task's calls are deleted with it; the ledger keeps them.
DELETE FROM tasks
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NOT NULL AND open = 0
RETURNING task_id

-- name: hasContext
SELECT 1 AS found FROM tasks WHERE context_id = $1 AND primitive = $2 AND service = $3 LIMIT 1

-- name: joinTask
-- Locks the row until the end of the transaction, so that the task cannot end before the call is added.
UPDATE tasks SET
  calls = calls + $7,
  expires_at = CASE WHEN expires_at > $8 THEN expires_at ELSE $8 END,
  next_look_at = $9,
  look_ms = $10,
  sent_bytes = sent_bytes + $11
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND account = $4 AND (CAST($5 AS TEXT) IS NULL OR run = $5) AND offer_id = $6 AND ended_at IS NULL
RETURNING expires_at

-- name: lastInContext
SELECT primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM tasks
WHERE context_id = $1 AND primitive = $2 AND service = $3 AND account = $4 AND (CAST($5 AS TEXT) IS NULL OR run = $5)
ORDER BY updated_at DESC LIMIT 1

-- name: listCalls
SELECT call_id, price, created_at, kept_until, most, settlement FROM task_calls WHERE primitive = $1 AND task_id = $2 AND service = $3 ORDER BY position, call_id

-- name: listShortCalls
-- Open calls of running tasks whose locks end between $1 and $2, and before their task. The bounds keep the search small.
SELECT c.call_id, t.created_at, t.expires_at
FROM task_calls c JOIN tasks t ON t.primitive = c.primitive AND t.task_id = c.task_id AND t.service = c.service
WHERE c.settlement IS NULL AND c.kept_until >= $1 AND c.kept_until <= $2 AND t.ended_at IS NULL AND c.kept_until < t.expires_at
ORDER BY c.kept_until LIMIT $3

-- name: listTasks
SELECT primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM tasks
WHERE account = $1 AND primitive = $2 AND (CAST($3 AS TEXT) IS NULL OR run = $3) AND (CAST($4 AS TEXT) IS NULL OR service = $4)
  AND (CAST($5 AS TEXT) IS NULL OR context_id = $5) AND (CAST($6 AS TEXT) IS NULL OR state = $6) AND updated_at >= $7
  AND (updated_at < $8 OR (updated_at = $8 AND (task_id, service) > ($9, $10)))
ORDER BY updated_at DESC, task_id, service LIMIT $11

-- name: liveStatesOfCalls
-- The states of an account's running tasks, by call. $1: ids of calls, see listParam.
SELECT task_calls.call_id, tasks.state FROM task_calls
JOIN tasks ON tasks.primitive = task_calls.primitive AND tasks.task_id = task_calls.task_id AND tasks.service = task_calls.service
WHERE task_calls.call_id IN (SELECT value ->> 0 FROM json_each($1)) AND tasks.account = $2 AND tasks.ended_at IS NULL

-- name: noteKept
UPDATE task_calls SET kept_until = $2 WHERE call_id = $1 AND kept_until < $2

-- name: noteSettlement
UPDATE task_calls SET settlement = $2 WHERE call_id = $1 AND settlement IS NULL

-- name: pgClaimTasks
-- The same as claimTasks, for several gateways at once. SKIP LOCKED makes each gateway skip rows that another one
-- is claiming. So no gateway waits, and none claims the same task.
WITH due AS MATERIALIZED (
  SELECT primitive AS due_primitive, task_id AS due_id, service AS due_service, offer_id AS due_offer, account AS due_account, next_look_at AS due_at
  FROM tasks
  WHERE open = 1 AND next_look_at <= $1 AND claimed_until <= $1 AND offer_id NOT IN (SELECT json_array_elements_text($5::json))
  ORDER BY next_look_at LIMIT 1024
  FOR UPDATE SKIP LOCKED
), chosen AS (
  SELECT due_primitive, due_id, due_service
  FROM (
    SELECT due.*, ROW_NUMBER() OVER (PARTITION BY due_account ORDER BY due_at) AS turn,
      ROW_NUMBER() OVER (PARTITION BY due_offer ORDER BY due_at) AS nth
    FROM due
  ) AS ranked
  WHERE nth <= $4 ORDER BY turn, due_at LIMIT $3
)
UPDATE tasks SET claimed_until = $2 FROM chosen
WHERE primitive = due_primitive AND task_id = due_id AND service = due_service
RETURNING primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes

-- name: putTask
INSERT INTO tasks (primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, asked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, $11, $11, $12, 0, NULL, NULL, 1, $13, $14, 0, $15)
ON CONFLICT (primitive, task_id, service) DO NOTHING
RETURNING task_id

-- name: recordObservation
UPDATE tasks SET state = $4, context_id = COALESCE($5, context_id), updated_at = $6, next_look_at = $7, look_ms = $8,
  gave_output = CASE WHEN $9 = 1 THEN 1 ELSE gave_output END
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NULL
RETURNING primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes

-- name: releaseTask
-- If a change of the task has moved the next poll meanwhile, the next poll stays there.
UPDATE tasks SET
  claimed_until = 0,
  look_ms = CASE WHEN next_look_at = $5 THEN $6 ELSE look_ms END,
  next_look_at = CASE WHEN next_look_at = $5 THEN $7 ELSE next_look_at END
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND claimed_until = $4

-- name: sweepContexts
DELETE FROM contexts WHERE used_at <= $1 AND (primitive, service, context_id) IN (
  SELECT primitive, service, context_id FROM contexts WHERE used_at <= $1 ORDER BY used_at LIMIT $2
)
RETURNING context_id

-- name: sweepTasks
-- The outer condition is checked again if the row was changed concurrently. The task's calls are deleted with it.
DELETE FROM tasks WHERE open = 0 AND (primitive, task_id, service) IN (
  SELECT primitive, task_id, service FROM tasks WHERE open = 0 AND ended_at <= $1 ORDER BY ended_at LIMIT $2
)
RETURNING task_id
