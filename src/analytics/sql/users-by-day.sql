SELECT day, COUNT(*) AS users FROM user_days WHERE day BETWEEN $1 AND $2 AND account_hash <> $3 GROUP BY day
