INSERT INTO analytics_cursors (chain, n, position)
SELECT r.value ->> 0, CAST(r.value ->> 1 AS BIGINT), CAST(r.value ->> 2 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (chain) DO UPDATE SET n = excluded.n, position = excluded.position
