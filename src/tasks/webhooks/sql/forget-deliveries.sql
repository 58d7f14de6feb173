DELETE FROM webhook_deliveries WHERE webhook = $1 AND position <= (SELECT signal FROM webhooks WHERE id = $1) - $2
RETURNING position
