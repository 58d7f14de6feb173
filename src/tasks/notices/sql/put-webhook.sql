INSERT INTO account_webhooks (account, sealed) VALUES ($1, $2)
ON CONFLICT (account) DO UPDATE SET sealed = excluded.sealed
