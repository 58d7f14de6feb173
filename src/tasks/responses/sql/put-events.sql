INSERT INTO kept_events (response, first, last, events)
SELECT id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS TEXT) FROM kept_responses
WHERE id = $1 AND run IN ('queued', 'in_progress', 'cancelling') AND run_until <= $5
ON CONFLICT DO NOTHING
