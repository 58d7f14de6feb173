-- An account that is already known keeps its first day, unless the new day is earlier.
INSERT INTO known_users (account_hash, wallet, since)
SELECT CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT), CAST(r.value ->> 2 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (account_hash) DO UPDATE SET since = excluded.since WHERE excluded.since < known_users.since
