DELETE FROM tool_pins WHERE provider = $1 AND service = $2 AND tool = $3
