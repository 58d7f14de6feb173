-- One batch, in one statement. Accounts and budgets change by differences, so that the CHECKs stand behind the row locks.
WITH
changed_accounts AS (
  UPDATE accounts SET available = accounts.available + c.available, locked = accounts.locked + c.locked
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS c (id, available, locked)
  WHERE accounts.id = c.id
),
new_accounts AS (
  INSERT INTO accounts (id, available, locked)
  SELECT id, available, locked FROM unnest($4::text[], $5::bigint[], $6::bigint[]) AS c (id, available, locked) ORDER BY id
  ON CONFLICT (id) DO UPDATE SET available = accounts.available + excluded.available, locked = accounts.locked + excluded.locked
),
changed_budgets AS (
  UPDATE budgets SET spent = budgets.spent + c.spent, locked = budgets.locked + c.locked
  FROM unnest($7::text[], $8::bigint[], $9::bigint[]) AS c (id, spent, locked)
  WHERE budgets.id = c.id
),
new_locks AS (
  INSERT INTO locks (id, account, amount, prices, budget, created_at, expires_at, lock_detail,
    state, price, provider, charged, fee, drawn, shortfall, resolved_at, usage, detail)
  SELECT id, account, amount, prices, budget, created_at, expires_at, lock_detail,
    COALESCE(state, 'held'), price, provider, COALESCE(charged, 0), COALESCE(fee, 0), COALESCE(drawn, 0), COALESCE(shortfall, 0), resolved_at, usage, detail
  FROM unnest($10::text[], $11::text[], $12::bigint[], $13::text[], $14::text[], $15::bigint[], $16::bigint[], $17::text[], $18::text[], $19::text[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::text[], $27::text[])
    AS n (id, account, amount, prices, budget, created_at, expires_at, lock_detail,
      state, price, provider, charged, fee, drawn, shortfall, resolved_at, usage, detail)
),
resolved_locks AS (
  UPDATE locks SET state = r.state, price = r.price, provider = r.provider, charged = r.charged, fee = r.fee, drawn = r.drawn,
    shortfall = r.shortfall, resolved_at = r.resolved_at, usage = r.usage, detail = r.detail
  FROM unnest($28::text[], $29::text[], $30::text[], $31::text[], $32::bigint[], $33::bigint[], $34::bigint[], $35::bigint[], $36::bigint[], $37::text[], $38::text[])
    AS r (id, state, price, provider, charged, fee, drawn, shortfall, resolved_at, usage, detail)
  -- Held, said so that the planner cannot answer it from the index of held locks, row by row.
  WHERE locks.id = r.id AND locks.resolved_at IS NULL
  RETURNING 1
),
new_transfers AS (
  INSERT INTO transfers (id, from_account, to_account, amount, memo, at)
  SELECT id, from_account, to_account, amount, memo, $53::bigint
  FROM unnest($39::text[], $40::text[], $41::text[], $42::bigint[], $43::text[]) AS t (id, from_account, to_account, amount, memo)
),
new_journal AS (
  INSERT INTO journal (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
  SELECT $54::text, $55::bigint, j.position - 1, kind, id, account, counterparty, amount, charged, fee, drawn, price, $53::bigint
  FROM unnest($44::text[], $45::text[], $46::text[], $47::text[], $48::bigint[], $49::bigint[], $50::bigint[], $51::bigint[], $52::text[])
    WITH ORDINALITY AS j (kind, id, account, counterparty, amount, charged, fee, drawn, price, position)
)
INSERT INTO journal_batches (chain, n, at, count, prev, hash)
-- A lock that somebody else resolved meanwhile makes the count NULL, which the table refuses: the whole batch is undone and decided anew.
SELECT $54::text, $55::bigint, $53::bigint,
  CASE WHEN (SELECT count(*) FROM resolved_locks) = $56::bigint THEN $57::bigint END, $58::text, $59::text
