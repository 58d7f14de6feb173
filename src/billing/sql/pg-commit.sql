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
    state, price, provider, charged, fee, fee_bps, drawn, shortfall, resolved_at, usage, detail, parent, depth, lendable, lent, kept)
  SELECT id, account, amount, prices, budget, created_at, expires_at, lock_detail,
    COALESCE(state, 'held'), price, provider, COALESCE(charged, 0), COALESCE(fee, 0), fee_bps, COALESCE(drawn, 0), COALESCE(shortfall, 0), resolved_at, usage, detail,
    parent, COALESCE(depth, 0), COALESCE(lendable, 0), COALESCE(lent, 0), COALESCE(kept, 0)
  FROM unnest($10::text[], $11::text[], $12::bigint[], $13::text[], $14::text[], $15::bigint[], $16::bigint[], $17::text[], $18::text[], $19::text[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[], $27::text[], $28::text[],
    $29::text[], $30::bigint[], $31::bigint[], $32::bigint[], $33::bigint[])
    AS n (id, account, amount, prices, budget, created_at, expires_at, lock_detail,
      state, price, provider, charged, fee, fee_bps, drawn, shortfall, resolved_at, usage, detail, parent, depth, lendable, lent, kept)
),
resolved_locks AS (
  UPDATE locks SET state = r.state, price = r.price, provider = r.provider, charged = r.charged, fee = r.fee, fee_bps = r.fee_bps, drawn = r.drawn,
    shortfall = r.shortfall, resolved_at = r.resolved_at, usage = r.usage, detail = r.detail
  FROM unnest($34::text[], $35::text[], $36::text[], $37::text[], $38::bigint[], $39::bigint[], $40::bigint[], $41::bigint[], $42::bigint[], $43::bigint[], $44::text[], $45::text[])
    AS r (id, state, price, provider, charged, fee, fee_bps, drawn, shortfall, resolved_at, usage, detail)
  -- Held, said so that the planner cannot answer it from the index of held locks, row by row.
  WHERE locks.id = r.id AND locks.resolved_at IS NULL
  RETURNING 1
),
new_transfers AS (
  INSERT INTO transfers (id, from_account, to_account, amount, memo, at)
  SELECT id, from_account, to_account, amount, memo, $60::bigint
  FROM unnest($46::text[], $47::text[], $48::text[], $49::bigint[], $50::text[]) AS t (id, from_account, to_account, amount, memo)
),
new_journal AS (
  INSERT INTO journal (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
  SELECT $61::text, $62::bigint, j.position - 1, kind, id, account, counterparty, amount, charged, fee, drawn, price, $60::bigint
  FROM unnest($51::text[], $52::text[], $53::text[], $54::text[], $55::bigint[], $56::bigint[], $57::bigint[], $58::bigint[], $59::text[])
    WITH ORDINALITY AS j (kind, id, account, counterparty, amount, charged, fee, drawn, price, position)
)
INSERT INTO journal_batches (chain, n, at, count, prev, hash)
-- A lock that somebody else resolved meanwhile makes the count NULL, which the table refuses: the whole batch is undone and decided anew.
SELECT $61::text, $62::bigint, $60::bigint,
  CASE WHEN (SELECT count(*) FROM resolved_locks) = $63::bigint THEN $64::bigint END, $65::text, $66::text
