-- name: answerOfLine
SELECT content, provider_batches.offer FROM batch_lines JOIN provider_batches ON provider_batches.id = batch_lines.provider_batch
WHERE batch_lines.batch = $1 AND batch_lines.n = $2 AND batch_lines.state = 'answered'

-- name: batchesThere
-- What providers have of other batches than $1, or are about to have.
SELECT provider_batches.offer, batches.account, batches.amount, CAST(SUM(provider_batches.bytes) AS BIGINT) AS bytes
FROM provider_batches JOIN batches ON batches.id = provider_batches.batch
WHERE provider_batches.state IN ('uploaded', 'creating', 'sent', 'doubted') AND provider_batches.id <> $1
GROUP BY provider_batches.offer, batches.account, batches.amount

-- name: countAnswered
SELECT COUNT(*) AS count FROM batch_lines WHERE provider_batch = $1 AND state <> 'held'

-- name: endDoneLines
-- The first lines that have no answer get this one, at most $4. $3: the claim.
UPDATE batch_lines SET state = 'answered', content = $2
WHERE provider_batch = $1 AND state = 'held' AND n IN (SELECT n FROM batch_lines WHERE provider_batch = $1 AND state = 'held' ORDER BY n LIMIT $4)
  AND EXISTS (SELECT 1 FROM batches WHERE id = batch_lines.batch AND claim = $3) RETURNING n

-- name: endHeldLines
-- The lines that have no answer get this one. $3: the claim.
UPDATE batch_lines SET state = 'answered', content = $2
WHERE provider_batch = $1 AND state = 'held' AND EXISTS (SELECT 1 FROM batches WHERE id = batch_lines.batch AND claim = $3) RETURNING n

-- name: giveBackLines
-- They are as those of a gateway that is gone: whoever goes on ends their calls, and makes others. $2: the claim.
UPDATE batch_lines SET state = 'running', provider_batch = NULL, content = NULL
WHERE provider_batch = $1 AND state = 'held' AND EXISTS (SELECT 1 FROM batches WHERE id = batch_lines.batch AND claim = $2) RETURNING n

-- name: heldRequests
SELECT content FROM batch_lines WHERE provider_batch = $1 AND state = 'held' ORDER BY n LIMIT $2 OFFSET $3

-- name: holdLine
-- $4: the batch at a provider. $6: the claim.
UPDATE batch_lines SET state = 'held', provider_batch = $4, content = $5
WHERE batch = $1 AND n = $2 AND call_id = $3 AND state = 'running' AND EXISTS (SELECT 1 FROM batches WHERE id = $1 AND claim = $6)
RETURNING n

-- name: moveProviderBatch
-- From the state $2 to $3. $7: the claim.
UPDATE provider_batches SET state = $3, file = $4, remote = $5, since = $6, refusals = $8, bytes = $9
WHERE id = $1 AND state = $2 AND EXISTS (SELECT 1 FROM batches WHERE id = provider_batches.batch AND claim = $7) RETURNING id

-- name: openProviderBatch
INSERT INTO provider_batches (id, batch, offer, path, state, since)
SELECT CAST($1 AS TEXT), id, CAST($3 AS TEXT), CAST($4 AS TEXT), 'collecting', CAST($5 AS BIGINT) FROM batches WHERE id = $2 AND claim = $6
RETURNING id

-- name: providerBatches
SELECT id, offer, path, state, file, remote, since, refusals, bytes FROM provider_batches WHERE batch = $1 AND state <> 'ended' ORDER BY since, id

-- name: putAnswer
-- The first answer of a line counts. $4: the claim.
UPDATE batch_lines SET state = 'answered', content = $3
WHERE provider_batch = $1 AND call_id = $2 AND state = 'held' AND EXISTS (SELECT 1 FROM batches WHERE id = batch_lines.batch AND claim = $4) RETURNING n
