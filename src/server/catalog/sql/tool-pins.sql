-- name: listToolPins
SELECT tool, sha256, version, first_seen, changed_at FROM tool_pins WHERE provider = $1 AND service = $2

-- name: countToolPins
SELECT COUNT(*) AS pins FROM tool_pins WHERE provider = $1

-- name: putToolPin
-- Returns no row when another gateway has written the same definition in the meantime, because that is not a new
-- version.
INSERT INTO tool_pins (provider, service, tool, sha256, version, first_seen, changed_at) VALUES ($1, $2, $3, $4, 1, $5, NULL)
ON CONFLICT (provider, service, tool) DO UPDATE SET
  sha256 = excluded.sha256,
  version = tool_pins.version + 1,
  changed_at = excluded.first_seen
WHERE tool_pins.sha256 <> excluded.sha256
RETURNING tool, sha256, version, first_seen, changed_at

-- name: deleteToolPin
DELETE FROM tool_pins WHERE provider = $1 AND service = $2 AND tool = $3
