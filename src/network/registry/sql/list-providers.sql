SELECT p.provider, r.account, r.name, r.updated_at, c.connected_at, c.left_at, b.reason, b.at AS banned_at
FROM (SELECT provider FROM provider_registrations UNION SELECT provider FROM provider_bans) p
LEFT JOIN provider_registrations r ON r.provider = p.provider
LEFT JOIN provider_connections c ON c.provider = p.provider
LEFT JOIN provider_bans b ON b.provider = p.provider
ORDER BY p.provider LIMIT $1 OFFSET $2
