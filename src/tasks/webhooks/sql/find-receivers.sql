-- The webhooks of a task that have not got this event yet. They are always ordered by id, because they are locked in
-- this order.
SELECT id, account, form FROM webhooks
WHERE primitive = $1 AND service = $2 AND task_id = $3 AND expires_at > $4
  AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_deliveries.webhook = webhooks.id AND webhook_deliveries.digest = $5)
ORDER BY id
