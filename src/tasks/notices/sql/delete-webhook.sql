DELETE FROM account_webhooks WHERE account = $1 RETURNING account
