SELECT id, available, locked FROM accounts WHERE id = $1
