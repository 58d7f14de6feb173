-- $4: JSON object whose members are arrays of one day, the days that are left out. Grouped, as a COUNT of DISTINCT values takes SQLite a fifth longer.
SELECT COUNT(*) AS users FROM (
  SELECT account_hash FROM user_days
  WHERE day BETWEEN $1 AND $2 AND account_hash <> $3 AND day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4))
  GROUP BY account_hash
) AS active
