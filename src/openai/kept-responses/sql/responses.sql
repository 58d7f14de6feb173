-- name: addItems
INSERT INTO kept_items (response, id, account)
SELECT DISTINCT kept_responses.id, value ->> 0, account FROM kept_responses, json_each($2) WHERE kept_responses.id = $1
ON CONFLICT DO NOTHING

-- name: cancelRun
UPDATE kept_responses SET run = 'cancelling' WHERE id = $1 AND run IN ('queued', 'in_progress') RETURNING id

-- name: countEventBytes
UPDATE kept_responses SET bytes = bytes + $2 WHERE id = $1 AND run IN ('queued', 'in_progress', 'cancelling') AND run_until <= $3

-- name: countRunning
-- Those of the account, and again those of the part $2.
SELECT count(*) + count(CASE WHEN COALESCE(part, '') = COALESCE(CAST($2 AS TEXT), '') THEN 1 END) AS running FROM kept_responses WHERE account = $1 AND run IN ('queued', 'in_progress', 'cancelling', 'deleting')

-- name: deleteEnded
DELETE FROM kept_responses WHERE id = $1 AND account = $2 AND (run IS NULL OR run = 'lost')

-- name: deleteEventsOfRun
DELETE FROM kept_events WHERE response IN (SELECT id FROM kept_responses WHERE id = $1 AND run = 'deleting')

-- name: deleteExcess
-- Deletes the responses of account $1 beyond its last used $2 bytes and $3 responses. $4: now. Its parts share both: what
-- a part used last is kept, up to as much as each other one has.
DELETE FROM kept_responses WHERE account = $1 AND run_until IS NULL AND (held_until IS NULL OR held_until <= $4) AND id IN (
  SELECT id FROM (
    SELECT id, SUM(bytes) OVER (ORDER BY own_kept, id) AS kept, ROW_NUMBER() OVER (ORDER BY own_place, expires_at DESC, id) AS place
    FROM (
      SELECT id, bytes, expires_at, SUM(bytes) OVER (PARTITION BY part ORDER BY expires_at DESC, id) AS own_kept,
        ROW_NUMBER() OVER (PARTITION BY part ORDER BY expires_at DESC, id) AS own_place
      FROM kept_responses WHERE account = $1
    ) AS of_parts
  ) AS last_used WHERE kept > $2 OR place > $3
)

-- name: deleteItemsOfRun
DELETE FROM kept_items WHERE response IN (SELECT id FROM kept_responses WHERE id = $1 AND run = 'deleting')

-- name: deleteRun
-- Deletes what a response under way consists of, and hides it ($3: it has expired since then). $4: bytes of its row.
UPDATE kept_responses SET run = 'deleting', previous = NULL, input = '', response = '', bytes = CAST($4 AS BIGINT), expires_at = $3
WHERE id = $1 AND account = $2 AND run IN ('queued', 'in_progress', 'cancelling') RETURNING id

-- name: expectResponse
-- $7: it has expired since then, so nobody is shown it.
INSERT INTO kept_responses (id, account, part, service, input, response, bytes, created_at, expires_at, run, run_until)
VALUES ($1, $2, $3, $4, '', '', $5, $6, $7, 'answering', $8)

-- name: findEvents
SELECT last, events FROM kept_events WHERE response = $1 AND last > $2 ORDER BY first LIMIT $3

-- name: findItems
-- The responses that have these items, the latest last. $1: the ids of items, see listParam.
SELECT kept_items.id AS item, kept_responses.id, kept_responses.account, part, service, previous, length(input) AS input_bytes,
  length(kept_responses.response) AS response_bytes, created_at, expires_at, run, run_until
FROM kept_items JOIN kept_responses ON kept_responses.id = kept_items.response
WHERE kept_items.account = $2 AND expires_at > $3 AND kept_items.id IN (SELECT value ->> 0 FROM json_each($1))
ORDER BY created_at

-- name: findLineage
-- A response and those that its conversation continues, the first one last.
WITH RECURSIVE lineage (id, place) AS (
  SELECT id, 0 FROM kept_responses WHERE id = $1 AND account = $2 AND expires_at > $3
  UNION ALL
  SELECT earlier.id, lineage.place + 1
  FROM lineage JOIN kept_responses AS later ON later.id = lineage.id
  JOIN kept_responses AS earlier ON earlier.id = later.previous
  WHERE earlier.account = $2 AND earlier.expires_at > $3 AND lineage.place < $4
)
SELECT kept_responses.id, account, part, service, previous, length(input) AS input_bytes, length(response) AS response_bytes, created_at, expires_at, run, run_until
FROM lineage JOIN kept_responses ON kept_responses.id = lineage.id ORDER BY place

-- name: findLost
SELECT id, account, part, service, previous, length(input) AS input_bytes, length(response) AS response_bytes, created_at, expires_at, run, run_until
FROM kept_responses WHERE run IN ('queued', 'in_progress', 'cancelling', 'deleting', 'lost', 'answering') AND run_until <= $1 LIMIT $2

-- name: findResponses
-- $1: ids, see listParam.
SELECT id, account, part, service, previous, length(input) AS input_bytes, length(response) AS response_bytes, created_at, expires_at, run, run_until
FROM kept_responses WHERE account = $2 AND expires_at > $3 AND id IN (SELECT value ->> 0 FROM json_each($1))

-- name: finishRun
-- Also for a response that counts as lost, because its gateway was only out of reach, until its charge is given back.
UPDATE kept_responses SET response = CAST($2 AS TEXT), bytes = bytes - length(response) + length(CAST($2 AS TEXT)), expires_at = $3, held_until = $4,
  run = NULL, run_until = NULL
WHERE id = $1 AND run <> 'deleting' AND NOT (run = 'lost' AND run_until IS NULL) RETURNING id

-- name: lastEvent
SELECT max(last) AS last FROM kept_events WHERE response = $1

-- name: loseRun
-- $6: when its call, which may still be charged, is looked at again.
UPDATE kept_responses SET response = CAST($2 AS TEXT), bytes = bytes - length(response) + length(CAST($2 AS TEXT)), expires_at = $3, held_until = $4,
  run = 'lost', run_until = CAST($6 AS BIGINT)
WHERE id = $1 AND run IN ('queued', 'in_progress', 'cancelling', 'lost') AND run_until <= $5 RETURNING id

-- name: noteBegun
UPDATE kept_responses SET run = 'in_progress' WHERE id = $1 AND run = 'queued'

-- name: postponeResponse
UPDATE kept_responses SET run_until = $2 WHERE id = $1 AND run = 'answering'

-- name: prolongResponses
-- $1: ids, see listParam.
UPDATE kept_responses SET expires_at = $2 WHERE expires_at < $2 AND id IN (SELECT value ->> 0 FROM json_each($1))

-- name: putEvents
INSERT INTO kept_events (response, first, last, events)
SELECT id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS TEXT) FROM kept_responses
WHERE id = $1 AND run IN ('queued', 'in_progress', 'cancelling') AND run_until <= $5
ON CONFLICT DO NOTHING

-- name: putResponse
INSERT INTO kept_responses (id, account, part, service, previous, input, response, bytes, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (id) DO UPDATE SET previous = excluded.previous, input = excluded.input, response = excluded.response, bytes = excluded.bytes,
  created_at = excluded.created_at, expires_at = excluded.expires_at, run = NULL, run_until = NULL
WHERE kept_responses.run = 'answering'

-- name: putRunning
-- $12: the most responses of a part of an account that may be under way, of twice as many of all its parts.
INSERT INTO kept_responses (id, account, part, service, previous, input, response, bytes, created_at, expires_at, run, run_until)
SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), CAST($10 AS BIGINT), 'queued', CAST($11 AS BIGINT)
WHERE (SELECT count(*) + count(CASE WHEN COALESCE(part, '') = COALESCE(CAST($3 AS TEXT), '') THEN 1 END) FROM kept_responses
  WHERE account = $2 AND run IN ('queued', 'in_progress', 'cancelling', 'deleting')) < 2 * CAST($12 AS BIGINT)
RETURNING id

-- name: readResponses
-- $1: ids, see listParam.
SELECT id, input, response, run FROM kept_responses WHERE account = $2 AND id IN (SELECT value ->> 0 FROM json_each($1))

-- name: removeResponse
-- Only one that is under way: the end of another one is stored.
DELETE FROM kept_responses WHERE id = $1 AND account = $2 AND run IN ('queued', 'in_progress', 'cancelling', 'deleting', 'answering')

-- name: renewRuns
-- $1: ids, see listParam.
UPDATE kept_responses SET run_until = $2, expires_at = CASE WHEN run = 'deleting' THEN expires_at ELSE $3 END
WHERE run IN ('queued', 'in_progress', 'cancelling', 'deleting') AND id IN (SELECT value ->> 0 FROM json_each($1))

-- name: showCancelled
UPDATE kept_responses SET response = CAST($2 AS TEXT), bytes = bytes - length(response) + length(CAST($2 AS TEXT))
WHERE id = $1 AND run = 'cancelling' RETURNING id

-- name: sizesOfAccounts
-- `unfunded`: 1 if the account costs nothing and has no money to speak of (unfunded-accounts.ts).
SELECT account, CAST(SUM(bytes) AS BIGINT) AS bytes,
  CASE WHEN (kept_responses.account LIKE 'eip155:%' OR kept_responses.account LIKE 'solana:%' OR kept_responses.account LIKE 'tollgate:local:org-%') AND NOT EXISTS (SELECT 1 FROM funded_accounts WHERE funded_accounts.id = 'escrow:' || kept_responses.account) THEN 1 ELSE 0 END AS unfunded
FROM kept_responses GROUP BY account

-- name: statesOfRuns
-- $1: ids, see listParam.
SELECT id, run FROM kept_responses WHERE id IN (SELECT value ->> 0 FROM json_each($1))

-- name: sweepResponses
-- One that was deleted counts as under way until its call is settled, and one that is not put yet has no end.
DELETE FROM kept_responses WHERE id IN (
  SELECT id FROM kept_responses WHERE expires_at <= $1 AND (run IS NULL OR run NOT IN ('deleting', 'answering')) ORDER BY expires_at LIMIT $2
) RETURNING id
