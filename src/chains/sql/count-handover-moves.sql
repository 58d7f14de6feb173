-- Counts the moves of a handover, which are known by the form of their ids, and reads the time of the newest.
SELECT COUNT(*) AS made, CAST(COALESCE(SUM(CASE WHEN state IN ('done', 'refused') THEN 0 ELSE 1 END), 0) AS BIGINT) AS under_way, COALESCE(MAX(created_at), 0) AS newest
FROM treasury_acts WHERE kind = 'move' AND network = $1 AND to_network = $1 AND sender = $2 AND id LIKE $3
