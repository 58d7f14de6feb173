SELECT id, from_account, to_account, amount, memo, at FROM transfers WHERE id = $1
