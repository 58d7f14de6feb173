-- $12: the most responses of an account that may be under way.
INSERT INTO kept_responses (id, account, part, service, previous, input, response, bytes, created_at, expires_at, run, run_until)
SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), CAST($10 AS BIGINT), 'queued', CAST($11 AS BIGINT)
WHERE (SELECT count(*) FROM kept_responses WHERE account = $2 AND run IN ('queued', 'in_progress', 'cancelling', 'deleting')) < CAST($12 AS BIGINT)
RETURNING id
