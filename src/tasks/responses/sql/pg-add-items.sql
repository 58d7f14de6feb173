INSERT INTO kept_items (response, id, account)
SELECT DISTINCT kept_responses.id, value, account FROM kept_responses, json_array_elements_text($2::json) AS value
WHERE kept_responses.id = $1
ON CONFLICT DO NOTHING
