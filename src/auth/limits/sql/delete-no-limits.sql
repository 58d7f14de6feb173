DELETE FROM account_limits WHERE account = $1 AND subject = $2 AND rules = '[]' AND requests_per_minute IS NULL AND tokens_per_minute IS NULL
