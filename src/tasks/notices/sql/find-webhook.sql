SELECT sealed FROM account_webhooks WHERE account = $1
