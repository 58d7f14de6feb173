-- Days are added in any order. So the days after an added one get a new previous day where the added day is nearer.
UPDATE user_days SET previous = (
  SELECT MAX(earlier.day) FROM user_days AS earlier WHERE earlier.account_hash = user_days.account_hash AND earlier.day < user_days.day
)
WHERE (day, account_hash) IN (
  SELECT later.day, later.account_hash
  FROM (SELECT CAST(r.value ->> 0 AS BIGINT) AS day, CAST(r.value ->> 1 AS BIGINT) AS account_hash FROM json_each($1) AS r) AS added
  JOIN user_days AS later ON later.account_hash = added.account_hash AND later.day > added.day AND later.previous < added.day
)
