-- newcomers: those who were not active in the range before.
SELECT day, COUNT(*) AS users, COUNT(CASE WHEN previous < $1 THEN 1 END) AS newcomers
FROM user_days WHERE day BETWEEN $1 AND $2 AND account_hash <> $3 GROUP BY day
