INSERT INTO kept_items (response, id, account)
SELECT DISTINCT kept_responses.id, value ->> 0, account FROM kept_responses, json_each($2) WHERE kept_responses.id = $1
ON CONFLICT DO NOTHING
