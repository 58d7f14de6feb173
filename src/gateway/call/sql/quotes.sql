-- name: insertQuote
-- Returns no row when the account already has $9 valid quotes that no call uses, or its parts twice as many, see ownPartOf.
INSERT INTO quotes (id, account, primitive, service, offers, amount, created_at, valid_until, part)
SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS BIGINT), CAST($7 AS BIGINT), CAST($8 AS BIGINT), CAST($10 AS TEXT)
WHERE (SELECT COUNT(*) + COUNT(CASE WHEN COALESCE(part, '') = COALESCE(CAST($10 AS TEXT), '') THEN 1 END) FROM quotes
  WHERE account = CAST($2 AS TEXT) AND valid_until > CAST($7 AS BIGINT) AND call_id IS NULL) < 2 * CAST($9 AS BIGINT)
RETURNING id

-- name: findQuote
SELECT account, part, primitive, service, offers, amount, valid_until, call_id, used_at FROM quotes WHERE id = $1

-- name: claimQuote
-- $4 is the earlier call that used the quote and was not charged. It is an empty string if there is none.
UPDATE quotes SET call_id = $2, used_at = $3 WHERE id = $1 AND (call_id IS NULL OR call_id = $4)
RETURNING id

-- name: freeQuote
UPDATE quotes SET call_id = NULL, used_at = NULL WHERE id = $1 AND call_id = $2

-- name: sweepQuotes
DELETE FROM quotes WHERE id IN (SELECT id FROM quotes WHERE valid_until <= $1 ORDER BY valid_until LIMIT $2)
RETURNING id
