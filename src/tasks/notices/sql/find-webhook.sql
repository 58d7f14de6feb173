SELECT account, sealed, origin, created_at FROM account_webhooks WHERE account = $1
