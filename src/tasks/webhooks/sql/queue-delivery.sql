INSERT INTO webhook_deliveries (webhook, position, digest, account, content_type, body, bytes)
SELECT id, signal, $2, account, $3, $4, CAST($5 AS BIGINT) FROM webhooks WHERE id = $1
ON CONFLICT (webhook, digest) DO NOTHING
RETURNING position
