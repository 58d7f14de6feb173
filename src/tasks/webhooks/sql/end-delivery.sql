UPDATE webhook_deliveries SET body = NULL WHERE webhook = $1 AND position = $2
