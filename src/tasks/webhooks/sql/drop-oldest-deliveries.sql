-- If a receiver is away for long, its oldest deliveries are out of date, because later events say more.
UPDATE webhook_deliveries SET body = NULL
WHERE webhook = $1 AND body IS NOT NULL AND position <= (SELECT signal FROM webhooks WHERE id = $1) - $2
RETURNING position
