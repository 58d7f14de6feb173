-- name: claimWebhook
UPDATE webhooks SET claim = $2, due_at = $3 WHERE id = $1 AND due_at <= $4
RETURNING account, run, primitive, service, task_id, name, receiver

-- name: countWaitingOfAccount
-- `unfunded`: 1 if the account costs nothing and has no money to speak of (unfunded-accounts.ts).
SELECT count(*) AS deliveries, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes,
  CASE WHEN (CAST($1 AS TEXT) LIKE 'eip155:%' OR CAST($1 AS TEXT) LIKE 'solana:%' OR CAST($1 AS TEXT) LIKE 'tollgate:local:org-%') AND NOT EXISTS (SELECT 1 FROM funded_accounts WHERE funded_accounts.id = 'escrow:' || CAST($1 AS TEXT)) THEN 1 ELSE 0 END AS unfunded
FROM webhook_deliveries WHERE account = $1 AND body IS NOT NULL

-- name: countWaiting
-- A row for the accounts that cost nothing and have no money to speak of, and one for all others.
SELECT CASE WHEN (waiting.account LIKE 'eip155:%' OR waiting.account LIKE 'solana:%' OR waiting.account LIKE 'tollgate:local:org-%') AND NOT EXISTS (SELECT 1 FROM funded_accounts WHERE funded_accounts.id = 'escrow:' || waiting.account) THEN 1 ELSE 0 END AS unfunded,
  CAST(SUM(deliveries) AS BIGINT) AS deliveries, CAST(SUM(bytes) AS BIGINT) AS bytes
FROM (SELECT account, COUNT(*) AS deliveries, SUM(bytes) AS bytes FROM webhook_deliveries WHERE body IS NOT NULL GROUP BY account) AS waiting
GROUP BY 1

-- name: deleteWebhook
DELETE FROM webhooks WHERE primitive = $1 AND service = $2 AND task_id = $3 AND account = $4 AND run = $5 AND name = $6
RETURNING id

-- name: dropOldestDeliveries
-- If a receiver is away for long, its oldest deliveries are out of date, because later events say more.
UPDATE webhook_deliveries SET body = NULL
WHERE webhook = $1 AND body IS NOT NULL AND position <= (SELECT signal FROM webhooks WHERE id = $1) - $2
RETURNING position

-- name: dueWebhooks
-- Round robin: every account gets its first webhook before any account gets its second.
SELECT id, account, receiver FROM (
  SELECT id, account, receiver, due_at, row_number() OVER (PARTITION BY account ORDER BY due_at, id) AS turn FROM webhooks WHERE due_at <= $1
) AS due
WHERE turn <= $2 ORDER BY turn, due_at LIMIT $3

-- name: endDelivery
UPDATE webhook_deliveries SET body = NULL WHERE webhook = $1 AND position = $2

-- name: endWebhook
-- Deletes the webhook only if it still has the receiver that answered. The client may have replaced the receiver
-- meanwhile.
DELETE FROM webhooks WHERE id = $1 AND claim = $2 AND sealed = $3

-- name: findReceivers
-- The webhooks of a task that have not got this event yet. They are always ordered by id, because they are locked in
-- this order.
SELECT id, account, form FROM webhooks
WHERE primitive = $1 AND service = $2 AND task_id = $3 AND expires_at > $4
  AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_deliveries.webhook = webhooks.id AND webhook_deliveries.digest = $5)
ORDER BY id

-- name: forgetDeliveries
DELETE FROM webhook_deliveries WHERE webhook = $1 AND position <= (SELECT signal FROM webhooks WHERE id = $1) - $2
RETURNING position

-- name: hasWebhook
SELECT 1 AS found FROM webhooks WHERE primitive = $1 AND service = $2 AND task_id = $3 LIMIT 1

-- name: keepClaim
UPDATE webhooks SET attempts = 0, due_at = $3 WHERE id = $1 AND claim = $2

-- name: listWebhooks
SELECT name, form, sealed, created_at FROM webhooks
WHERE primitive = $1 AND service = $2 AND task_id = $3 AND account = $4 AND run = $5 AND expires_at > $6
ORDER BY created_at, name

-- name: nextDelivery
-- Reads the signal and the queue at the same moment. If the queue is empty, the signal shows later whether something
-- was queued since. Returns no row if another gateway has claimed the webhook.
SELECT webhooks.signal, webhooks.attempts, webhooks.sealed, position, content_type, body
FROM webhooks LEFT JOIN webhook_deliveries ON webhook_deliveries.webhook = webhooks.id AND webhook_deliveries.body IS NOT NULL
WHERE webhooks.id = $1 AND webhooks.claim = $2
ORDER BY position LIMIT 1

-- name: putWebhook
-- Returns no row if the task or the account has the most webhooks allowed. A webhook with the same name is replaced,
-- and the deliveries in its queue go to the new receiver.
INSERT INTO webhooks (id, account, run, primitive, service, task_id, name, form, receiver, sealed, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, CAST($11 AS BIGINT), CAST($12 AS BIGINT)
WHERE EXISTS (
    SELECT 1 FROM webhooks
    WHERE primitive = $4 AND service = $5 AND task_id = $6 AND account = $2 AND run = $3 AND name = $7
  ) OR (
    (SELECT count(*) FROM webhooks WHERE primitive = $4 AND service = $5 AND task_id = $6) < CAST($13 AS BIGINT)
    AND (SELECT count(*) FROM webhooks WHERE account = $2) < CAST($14 AS BIGINT)
  )
ON CONFLICT (primitive, service, task_id, account, run, name) DO UPDATE SET
  form = excluded.form, receiver = excluded.receiver, sealed = excluded.sealed, attempts = 0, expires_at = excluded.expires_at
RETURNING created_at

-- name: queueDelivery
INSERT INTO webhook_deliveries (webhook, position, digest, account, content_type, body, bytes)
SELECT id, signal, $2, account, $3, $4, CAST($5 AS BIGINT) FROM webhooks WHERE id = $1
ON CONFLICT (webhook, digest) DO NOTHING
RETURNING position

-- name: releaseWebhook
UPDATE webhooks SET claim = NULL, attempts = $3, due_at = $4 WHERE id = $1 AND claim = $2

-- name: restWebhook
-- The queue was empty at this signal. If something was queued since, the webhook is due again.
UPDATE webhooks SET claim = NULL, attempts = 0, due_at = CASE WHEN signal = $3 THEN NULL ELSE CAST($4 AS BIGINT) END WHERE id = $1 AND claim = $2
RETURNING due_at

-- name: signalWebhook
-- Locks the row until the end of the transaction, so that positions are assigned one after the other.
UPDATE webhooks SET signal = signal + 1, due_at = coalesce(due_at, $2), expires_at = $3 WHERE id = $1
RETURNING signal

-- name: sweepWebhooks
DELETE FROM webhooks WHERE expires_at <= $1 AND id IN (SELECT id FROM webhooks WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
RETURNING id
