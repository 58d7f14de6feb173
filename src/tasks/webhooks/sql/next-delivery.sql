-- Reads the signal and the queue at the same moment. If the queue is empty, the signal shows later whether something
-- was queued since. Returns no row if another gateway has claimed the webhook.
SELECT webhooks.signal, webhooks.attempts, webhooks.sealed, position, content_type, body
FROM webhooks LEFT JOIN webhook_deliveries ON webhook_deliveries.webhook = webhooks.id AND webhook_deliveries.body IS NOT NULL
WHERE webhooks.id = $1 AND webhooks.claim = $2
ORDER BY position LIMIT 1
