SELECT r.document, r.past_prices, r.revision, r.name, r.created_at, r.updated_at, c.connection, c.node, c.connected_at, c.left_at,
  (SELECT provider FROM provider_registrations WHERE name_key = $2) AS name_owner,
  (SELECT MIN(name) FROM service_names WHERE provider = $1) AS named
FROM provider_connections c LEFT JOIN provider_registrations r ON r.provider = c.provider
WHERE c.provider = $1
