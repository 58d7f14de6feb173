-- name: listProviders
SELECT p.provider, r.account, r.name, r.updated_at, c.connected_at, c.left_at, b.reason, b.at AS banned_at
FROM (SELECT provider FROM provider_registrations UNION SELECT provider FROM provider_bans) p
LEFT JOIN provider_registrations r ON r.provider = p.provider
LEFT JOIN provider_connections c ON c.provider = p.provider
LEFT JOIN provider_bans b ON b.provider = p.provider
ORDER BY p.provider LIMIT $1 OFFSET $2

-- name: isSeenProvider
SELECT 1 FROM provider_connections WHERE provider = $1

-- name: findSeller
-- The provider of the account $1, and whether a running gateway has its connection.
SELECT r.provider,
  EXISTS (SELECT 1 FROM provider_connections c JOIN nodes n ON n.id = c.node
    WHERE c.provider = r.provider AND c.left_at IS NULL) AS connected,
  EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = r.provider) AS banned
FROM provider_registrations r WHERE r.account = $1

-- name: putBan
INSERT INTO provider_bans (provider, reason, at) VALUES ($1, $2, $3)
ON CONFLICT (provider) DO UPDATE SET reason = excluded.reason
RETURNING provider, reason, at

-- name: deleteBan
DELETE FROM provider_bans WHERE provider = $1 RETURNING provider

-- name: listBans
SELECT provider, reason, at FROM provider_bans
