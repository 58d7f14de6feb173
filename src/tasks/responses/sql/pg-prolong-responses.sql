-- $1: JSON array of ids.
UPDATE kept_responses SET expires_at = $2 WHERE expires_at < $2 AND id IN (SELECT value FROM json_array_elements_text($1::json) AS value)
