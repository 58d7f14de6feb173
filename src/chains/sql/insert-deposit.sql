-- $10 NULL: no limit for the open payments of this payer.
INSERT INTO deposits (id, network, account, payer, amount, payment, request, state, created_at, updated_at, next_look_at, looks)
SELECT $1, $2, $3, $4, CAST($5 AS BIGINT), $6, $7, 'received', CAST($8 AS BIGINT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), 0
WHERE CAST($10 AS BIGINT) IS NULL OR $10 > (SELECT COUNT(*) FROM deposits AS others WHERE others.network = $2 AND others.state = 'received' AND others.payer = $4 AND others.payment IS NOT NULL)
ON CONFLICT (id) DO NOTHING
RETURNING id
