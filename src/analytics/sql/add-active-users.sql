INSERT INTO user_days (day, account_hash)
SELECT CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (day, account_hash) DO NOTHING
