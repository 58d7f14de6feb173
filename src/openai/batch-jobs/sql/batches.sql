-- name: beginLine
-- Only for the gateway that has the batch. $4: its claim. $5: how many charges of the line were given back.
INSERT INTO batch_lines (batch, n, call_id, state, bytes, prompt, cached, completion, reasoning, lost)
SELECT id, CAST($2 AS BIGINT), CAST($3 AS TEXT), 'running', 0, 0, 0, 0, 0, CAST($5 AS BIGINT) FROM batches WHERE id = $1 AND claim = $4
ON CONFLICT (batch, n) DO UPDATE SET call_id = excluded.call_id, state = 'running', lost = CAST($5 AS BIGINT)
  WHERE batch_lines.state IN ('running', 'waiting')
RETURNING n

-- name: cancelBatch
-- A batch that waits for a provider is due at once.
UPDATE batches SET status = 'cancelling', cancelling_at = $3, due_at = CASE WHEN claim IS NULL THEN $3 ELSE due_at END
WHERE id = $1 AND account = $2 AND status IN ('validating', 'in_progress') RETURNING id

-- name: claimBatch
UPDATE batches SET claim = $2, due_at = $3 WHERE id = $1 AND due_at <= $4 RETURNING id

-- name: closeBatch
-- It has ended, and all that was to be told of it is queued.
UPDATE batches SET claim = NULL, due_at = NULL WHERE id = $1 AND claim = $2 AND ended_at IS NOT NULL

-- name: dueBatches
-- In turns of accounts: the first batch of each, then the second of each, at most $2 of one account.
SELECT id, account, status, amount FROM (
  SELECT id, account, status, amount, due_at,
    row_number() OVER (PARTITION BY account, CASE WHEN status = 'validating' THEN 1 ELSE 0 END ORDER BY due_at, id) AS turn
  FROM batches WHERE due_at <= $1
) AS due
WHERE turn <= $2 ORDER BY turn, due_at, id LIMIT $3

-- name: endBatch
-- $5: its faults. The operator's words for one that he has ended are there already, perhaps since all its lines ended.
UPDATE batches SET status = CASE WHEN status = 'cancelling' AND CAST($3 AS TEXT) = 'completed' THEN 'cancelled' ELSE CAST($3 AS TEXT) END, ended_at = $4, errors = COALESCE($5, errors), completed = $6, failed = $7, usage = $8
WHERE id = $1 AND claim = $2 AND ended_at IS NULL RETURNING status

-- name: endBatchLine
-- Once, and only by the call that the line has now, for the gateway that has the batch. $11: its claim. Another one that
-- takes over gives back what the call was charged.
UPDATE batch_lines SET state = $4, content = $5, bytes = $6, prompt = $7, cached = $8, completion = $9, reasoning = $10
WHERE batch = $1 AND n = $2 AND call_id = $3 AND state IN ('running', 'answered')
  AND EXISTS (SELECT 1 FROM batches WHERE id = batch_lines.batch AND claim = $11) RETURNING n

-- name: finalizeBatch
UPDATE batches SET status = 'finalizing', finalizing_at = $3, completed = $4, failed = $5
WHERE id = $1 AND claim = $2 AND status = 'in_progress' RETURNING id

-- name: findBatch
SELECT id, account, part, api_key, request, dialect, endpoint, input_file, output_file, error_file, max_cost, keep_ms, metadata, tags, errors, status,
  lock_id, amount, model, total, completed, failed, usage, created_at, expires_at, in_progress_at, cancelling_at, finalizing_at, ended_at
FROM batches WHERE id = $1

-- name: linesOfBatch
SELECT n, call_id, state, lost FROM batch_lines WHERE batch = $1

-- name: listBatches
-- The batches of an account, the newest first, after the one that was created at $3 with the id $4.
SELECT id, account, part, api_key, request, dialect, endpoint, input_file, output_file, error_file, max_cost, keep_ms, metadata, tags, errors, status,
  lock_id, amount, model, total, completed, failed, usage, created_at, expires_at, in_progress_at, cancelling_at, finalizing_at, ended_at
FROM batches
WHERE account = $1 AND (CAST($2 AS TEXT) IS NULL OR part = $2)
  AND (CAST($4 AS TEXT) IS NULL OR created_at < $3 OR (created_at = $3 AND id < $4))
ORDER BY created_at DESC, id DESC LIMIT $5

-- name: lockBatch
-- The lock is named before it is made, so that whoever goes on finds it.
UPDATE batches SET lock_id = $3, amount = $4, total = $5, model = $6 WHERE id = $1 AND claim = $2 AND status = 'validating' RETURNING id

-- name: makeAllDue
-- The only gateway of a database starts: the claims are those of processes that are gone.
UPDATE batches SET claim = NULL, due_at = $1 WHERE due_at IS NOT NULL

-- name: operatorEndsBatch
-- As cancelBatch, also if its consumer has cancelled it, or if its lock is all that is left of it. $4: the words for its consumer.
UPDATE batches SET status = 'cancelling', cancelling_at = COALESCE(cancelling_at, $3), errors = $4, due_at = CASE WHEN claim IS NULL THEN $3 ELSE due_at END
WHERE id = $1 AND lock_id = $2 AND errors IS NULL AND status IN ('validating', 'in_progress', 'finalizing', 'cancelling') RETURNING id

-- name: postponeLine
-- It got no lock, and waits until other lines give back what they do not use.
UPDATE batch_lines SET state = 'waiting' WHERE batch = $1 AND n = $2 AND call_id = $3 AND state = 'running' RETURNING n

-- name: putBatch
-- $14: the most batches of a part of an account that may be under way, of twice as many of all its parts.
INSERT INTO batches (id, account, part, api_key, dialect, endpoint, input_file, output_file, error_file, max_cost, keep_ms, metadata, status,
  total, completed, failed, created_at, expires_at, due_at, request, tags)
SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT), CAST($8 AS TEXT), CAST($9 AS TEXT),
  CAST($10 AS BIGINT), CAST($11 AS BIGINT), CAST($12 AS TEXT), 'validating', 0, 0, 0, CAST($13 AS BIGINT), CAST($15 AS BIGINT), CAST($13 AS BIGINT), CAST($16 AS TEXT), CAST($17 AS TEXT)
WHERE (SELECT count(*) + count(CASE WHEN COALESCE(part, '') = COALESCE(CAST($3 AS TEXT), '') THEN 1 END) FROM batches
  WHERE account = $2 AND ended_at IS NULL) < 2 * CAST($14 AS BIGINT)
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: putResults
-- A file of the results, unless none of the lines has this state. $5: the time until which it is kept.
INSERT INTO files (id, account, part, purpose, name, bytes, room, state, batch, results, created_at, expires_at)
SELECT CAST($1 AS TEXT), batches.account, batches.part, 'batch_output', CAST($4 AS TEXT), SUM(batch_lines.bytes), SUM(length(batch_lines.content)), 'stored',
  batches.id, CAST($3 AS TEXT), CAST($6 AS BIGINT), CAST($5 AS BIGINT)
FROM batches JOIN batch_lines ON batch_lines.batch = batches.id
WHERE batches.id = $2 AND batches.claim = $7 AND batch_lines.state = $3
GROUP BY batches.id, batches.account, batches.part
ON CONFLICT (id) DO NOTHING

-- name: releaseBatch
-- $6: its status when it was claimed. If it was cancelled meanwhile, it is due at once. $7: now.
UPDATE batches SET claim = NULL, completed = CASE WHEN ended_at IS NULL THEN CAST($4 AS BIGINT) ELSE completed END,
  failed = CASE WHEN ended_at IS NULL THEN CAST($5 AS BIGINT) ELSE failed END,
  due_at = CASE WHEN status = $6 THEN CAST($3 AS BIGINT) ELSE CAST($7 AS BIGINT) END
WHERE id = $1 AND claim = $2 AND due_at IS NOT NULL

-- name: renewBatch
-- The counts of a batch that has ended are final.
UPDATE batches SET due_at = $3, completed = CASE WHEN ended_at IS NULL THEN CAST($4 AS BIGINT) ELSE completed END,
  failed = CASE WHEN ended_at IS NULL THEN CAST($5 AS BIGINT) ELSE failed END
WHERE id = $1 AND claim = $2 AND due_at IS NOT NULL RETURNING status, errors

-- name: runBatch
UPDATE batches SET status = 'in_progress', in_progress_at = $3 WHERE id = $1 AND claim = $2 AND status = 'validating' RETURNING id

-- name: sumLines
SELECT state, count(*) AS count, CAST(SUM(length(content)) AS BIGINT) AS room, CAST(SUM(prompt) AS BIGINT) AS prompt, CAST(SUM(cached) AS BIGINT) AS cached,
  CAST(SUM(completion) AS BIGINT) AS completion, CAST(SUM(reasoning) AS BIGINT) AS reasoning
FROM batch_lines WHERE batch = $1 GROUP BY state

-- name: sweepBatches
-- Batches that ended long ago, without files of results.
DELETE FROM batches WHERE id IN (
  SELECT id FROM batches WHERE ended_at <= $1 AND NOT EXISTS (SELECT 1 FROM files WHERE files.batch = batches.id) ORDER BY ended_at LIMIT $2
) RETURNING id
