INSERT INTO kept_items (response, id, account)
SELECT DISTINCT $1, value, $2 FROM json_each($3)
