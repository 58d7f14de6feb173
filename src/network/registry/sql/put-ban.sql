INSERT INTO provider_bans (provider, reason, at) VALUES ($1, $2, $3)
ON CONFLICT (provider) DO UPDATE SET reason = excluded.reason
RETURNING provider, reason, at
