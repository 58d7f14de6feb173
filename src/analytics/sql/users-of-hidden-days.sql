-- Counts users whose first active day of the range is hidden but who were also active on a later visible day. $4: the
-- hidden days, a JSON object of arrays, each with one day.
SELECT COUNT(*) AS users FROM user_days AS hidden
WHERE hidden.day IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4)) AND hidden.day BETWEEN $1 AND $2 AND hidden.previous < $1
  AND hidden.account_hash <> $3
  AND EXISTS (
    SELECT 1 FROM user_days AS later
    WHERE later.account_hash = hidden.account_hash AND later.day > hidden.day AND later.day <= $2
      AND later.day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($4))
  )
