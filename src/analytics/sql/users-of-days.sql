-- $4: JSON object whose members are arrays of one day, the days that are left out.
SELECT COUNT(DISTINCT account_hash) AS users FROM user_days
WHERE day BETWEEN $1 AND $2 AND account_hash <> $3 AND day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4))
