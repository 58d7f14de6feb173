INSERT INTO kept_responses (id, account, part, service, previous, input, response, bytes, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
