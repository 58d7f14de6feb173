SELECT CAST(COALESCE(SUM(available), 0) + COALESCE(SUM(locked), 0) AS BIGINT) AS total, COUNT(*) AS legs FROM entries
