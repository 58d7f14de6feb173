SELECT COUNT(*) AS pins FROM tool_pins WHERE provider = $1
