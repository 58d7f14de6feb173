-- The provider of the account $1, and whether a running gateway has its connection.
SELECT r.provider,
  EXISTS (SELECT 1 FROM provider_connections c JOIN nodes n ON n.id = c.node
    WHERE c.provider = r.provider AND c.left_at IS NULL) AS connected,
  EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = r.provider) AS banned
FROM provider_registrations r WHERE r.account = $1
