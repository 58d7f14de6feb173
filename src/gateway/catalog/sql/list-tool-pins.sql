SELECT tool, sha256, version, first_seen, changed_at FROM tool_pins WHERE provider = $1 AND service = $2
