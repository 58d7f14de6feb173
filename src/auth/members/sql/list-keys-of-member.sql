SELECT hash FROM api_keys WHERE account = $1 AND member = $2
