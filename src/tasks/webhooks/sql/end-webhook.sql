-- Deletes the webhook only if it still has the receiver that answered. The client may have replaced the receiver
-- meanwhile.
DELETE FROM webhooks WHERE id = $1 AND claim = $2 AND sealed = $3
