INSERT INTO kept_items (response, id, account)
SELECT DISTINCT $1, value, $2 FROM json_array_elements_text($3::json) AS value
