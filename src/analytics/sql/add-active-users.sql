INSERT INTO user_days (day, account_hash, previous)
SELECT added.day, added.account_hash, COALESCE(
  (SELECT MAX(earlier.day) FROM user_days AS earlier WHERE earlier.account_hash = added.account_hash AND earlier.day < added.day), -1
)
FROM (SELECT CAST(r.value ->> 0 AS BIGINT) AS day, CAST(r.value ->> 1 AS BIGINT) AS account_hash FROM json_each($1) AS r) AS added WHERE TRUE
ON CONFLICT (day, account_hash) DO NOTHING
