-- Returns no row when the account already has $9 valid quotes that no call uses.
INSERT INTO quotes (id, account, primitive, service, offers, amount, created_at, valid_until, part)
SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS BIGINT), CAST($7 AS BIGINT), CAST($8 AS BIGINT), CAST($10 AS TEXT)
WHERE (SELECT COUNT(*) FROM quotes WHERE account = CAST($2 AS TEXT) AND valid_until > CAST($7 AS BIGINT) AND call_id IS NULL) < CAST($9 AS BIGINT)
RETURNING id
