-- One account's, and all. A file that is being written counts as the largest that it may become ($2).
SELECT CAST(COALESCE(SUM(CASE WHEN account = $1 THEN size ELSE 0 END), 0) AS BIGINT) AS own, CAST(COALESCE(SUM(size), 0) AS BIGINT) AS total
FROM (SELECT account, CASE WHEN state = 'writing' THEN $2 ELSE bytes END AS size FROM blobs) AS files
