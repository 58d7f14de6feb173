-- $1: JSON array of ids.
SELECT id, account, part, service, previous, length(input) AS input_bytes, length(response) AS response_bytes, created_at, expires_at, run, run_until
FROM kept_responses WHERE account = $2 AND expires_at > $3 AND id IN (SELECT value FROM json_array_elements_text($1::json) AS value)
