-- One account's, and all.
SELECT CAST(COALESCE(SUM(CASE WHEN account = $1 THEN bytes ELSE 0 END), 0) AS BIGINT) AS own, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS total FROM blobs
