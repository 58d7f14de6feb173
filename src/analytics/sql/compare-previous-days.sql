-- Finds days of users whose column previous is not their last active day before.
SELECT day, COUNT(*) AS users FROM (
  SELECT day, previous, LAG(day) OVER (PARTITION BY account_hash ORDER BY day) AS earlier FROM user_days
) AS told
WHERE previous <> COALESCE(earlier, -1)
GROUP BY day LIMIT 20
