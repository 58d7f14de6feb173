DELETE FROM account_limits WHERE account = $1 AND subject = $2
