-- $4: 1 to group the rows by day.
SELECT offer, CASE WHEN $4 = 1 THEN day ELSE 0 END AS day, CAST(SUM(successes) AS BIGINT) AS successes, CAST(SUM(failures) AS BIGINT) AS failures FROM offer_days
WHERE day BETWEEN $1 AND $2 AND day NOT IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($3))
GROUP BY 1, 2
