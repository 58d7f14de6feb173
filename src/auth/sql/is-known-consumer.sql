SELECT account FROM consumers WHERE account = $1
UNION ALL
SELECT account FROM api_keys WHERE account = $1
UNION ALL
SELECT account FROM deposits WHERE account = $1
LIMIT 1
