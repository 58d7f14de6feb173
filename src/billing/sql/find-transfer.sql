SELECT from_account, to_account, amount FROM transfers WHERE id = $1
