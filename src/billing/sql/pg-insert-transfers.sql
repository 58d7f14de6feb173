INSERT INTO transfers (id, from_account, to_account, amount, memo, at)
SELECT id, from_account, to_account, amount, memo, $6
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[]) AS t (id, from_account, to_account, amount, memo)
