INSERT INTO account_webhooks (account, sealed, origin, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (account) DO UPDATE SET sealed = excluded.sealed, origin = excluded.origin, created_at = excluded.created_at
