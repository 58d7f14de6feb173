-- Changes locks of earlier batches that lent money, got money back, or are kept from now on. `lent` changes by a
-- difference, so that its CHECK also catches an error of the row locks.
UPDATE locks SET lent = locks.lent + c.lent, kept = c.kept, expires_at = c.expires_at
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS c (id, lent, kept, expires_at)
WHERE locks.id = c.id
