-- $1: JSON array of ids.
SELECT id, run FROM kept_responses WHERE id IN (SELECT value FROM json_array_elements_text($1::json) AS value)
