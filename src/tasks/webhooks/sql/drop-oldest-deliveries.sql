-- What a receiver that is away for long would get last is out of date: later news say more.
UPDATE webhook_deliveries SET body = NULL
WHERE webhook = $1 AND body IS NOT NULL AND position <= (SELECT signal FROM webhooks WHERE id = $1) - $2
RETURNING position
