-- Writes one group in one statement. Accounts change by differences, so that the CHECKs also catch an error of the row
-- locks. The JSON texts of all rows are one parameter, each after control character 31. JSON contains control
-- characters only as escapes, so the texts need no quoting. Control character 30 stands for NULL.
WITH
changed_accounts AS (
  UPDATE accounts SET available = accounts.available + c.available, locked = accounts.locked + c.locked
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS c (id, available, locked)
  WHERE accounts.id = c.id
),
new_locks AS (
  INSERT INTO locks (id, account, amount, prices, budget, created_at, expires_at, lock_detail,
    state, charged, fee, drawn, shortfall, parent, depth, lendable, lent, kept)
  SELECT id, account, amount, prices, budget, $27::bigint, expires_at, lock_detail,
    'held', 0, 0, 0, 0, parent, COALESCE(depth, 0), COALESCE(lendable, 0), COALESCE(lent, 0), COALESCE(kept, 0)
  FROM unnest($4::text[], $5::text[], $6::bigint[], (string_to_array($7::text, chr(31)))[2:], $8::text[], $9::bigint[], (string_to_array($10::text, chr(31)))[2:],
    $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
    AS n (id, account, amount, prices, budget, expires_at, lock_detail, parent, depth, lendable, lent, kept)
),
resolved_locks AS (
  UPDATE locks SET state = r.state, price = r.price, provider = r.provider, charged = r.charged, fee = r.fee, fee_bps = r.fee_bps, drawn = r.drawn,
    shortfall = r.shortfall, resolved_at = $27::bigint, usage = r.usage, detail = r.detail
  FROM unnest($16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[],
    (string_to_array($25::text, chr(31), chr(30)))[2:], (string_to_array($26::text, chr(31), chr(30)))[2:])
    AS r (id, state, price, provider, charged, fee, fee_bps, drawn, shortfall, usage, detail)
  -- `resolved_at IS NULL` means held. A condition on `state` would let the planner search the index of held locks for
  -- each row.
  WHERE locks.id = r.id AND locks.resolved_at IS NULL
  RETURNING 1
)
INSERT INTO journal_batches (chain, n, at, count, prev, hash, movements)
-- If another gateway has resolved one of the locks meanwhile, the count is NULL, which the table refuses. Then the
-- whole group is rolled back and decided again.
SELECT $28::text, $29::bigint, $27::bigint,
  CASE WHEN (SELECT count(*) FROM resolved_locks) = $30::bigint THEN $31::bigint END, $32::text, $33::text, $34::text
