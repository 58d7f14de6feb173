SELECT account, CAST(SUM(bytes) AS BIGINT) AS bytes FROM kept_responses GROUP BY account
