INSERT INTO transfers (id, from_account, to_account, amount, memo, at) VALUES ($1, $2, $3, $4, $5, $6)
