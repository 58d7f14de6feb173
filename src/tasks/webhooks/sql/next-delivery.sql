-- One moment of both: the signal says whether something was queued after an empty queue was seen. No row where another gateway has taken it.
SELECT webhooks.signal, webhooks.attempts, webhooks.sealed, position, content_type, body
FROM webhooks LEFT JOIN webhook_deliveries ON webhook_deliveries.webhook = webhooks.id AND webhook_deliveries.body IS NOT NULL
WHERE webhooks.id = $1 AND webhooks.claim = $2
ORDER BY position LIMIT 1
