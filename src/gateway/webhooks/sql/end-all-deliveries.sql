UPDATE webhook_deliveries SET body = NULL WHERE webhook = $1 AND body IS NOT NULL
