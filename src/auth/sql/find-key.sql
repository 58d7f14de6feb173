SELECT * FROM api_keys WHERE hash = $1
