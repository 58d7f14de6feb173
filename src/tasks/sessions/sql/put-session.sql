INSERT INTO sessions (id, account, kind, state, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET account = excluded.account, kind = excluded.kind, state = excluded.state, expires_at = excluded.expires_at
