-- Ids are text, money is BIGINT micro-USD, times are BIGINT epoch milliseconds, JSON is text.

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  available BIGINT NOT NULL,
  locked BIGINT NOT NULL,
  -- Treasuries mirror money that is held elsewhere. No other account may be negative.
  CONSTRAINT accounts_available CHECK (available >= 0 OR id LIKE 'treasury:%'),
  CONSTRAINT accounts_locked CHECK (locked >= 0)
);

CREATE TABLE budgets (
  id TEXT PRIMARY KEY,
  spent BIGINT NOT NULL,
  locked BIGINT NOT NULL,
  CONSTRAINT budgets_spent CHECK (spent >= 0),
  CONSTRAINT budgets_locked CHECK (locked >= 0)
);

-- One row per call: the lock and its resolution, the money side of a generation.
CREATE TABLE locks (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  amount BIGINT NOT NULL,
  prices TEXT NOT NULL,
  budget TEXT,
  state TEXT NOT NULL,
  price TEXT,
  provider TEXT,
  charged BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  drawn BIGINT NOT NULL,
  shortfall BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  resolved_at BIGINT,
  lock_detail TEXT NOT NULL,
  usage TEXT,
  detail TEXT,
  CONSTRAINT locks_state CHECK (state IN ('held', 'settled', 'released', 'expired')),
  CONSTRAINT locks_amounts CHECK (amount >= 0 AND fee >= 0 AND drawn >= 0 AND shortfall >= 0 AND charged >= fee AND charged >= drawn AND charged - drawn <= amount),
  CONSTRAINT locks_resolved CHECK ((state = 'held') = (resolved_at IS NULL))
);
CREATE INDEX locks_held ON locks (expires_at) WHERE state = 'held';
CREATE INDEX locks_account ON locks (account, created_at);

CREATE TABLE transfers (
  id TEXT PRIMARY KEY,
  from_account TEXT NOT NULL,
  to_account TEXT NOT NULL,
  amount BIGINT NOT NULL,
  memo TEXT NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT transfers_amount CHECK (amount > 0)
);

-- Append only. One row per operation that had an effect. The view `entries` derives the double-entry legs.
CREATE TABLE journal (
  chain TEXT NOT NULL,
  batch BIGINT NOT NULL,
  position BIGINT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  account TEXT NOT NULL,
  counterparty TEXT,
  amount BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  drawn BIGINT NOT NULL,
  price TEXT,
  at BIGINT NOT NULL,
  PRIMARY KEY (chain, batch, position)
);

-- One hash chain per writer: hash = sha256(prev, canonical text of the batch and its rows).
CREATE TABLE journal_batches (
  chain TEXT NOT NULL,
  n BIGINT NOT NULL,
  at BIGINT NOT NULL,
  count BIGINT NOT NULL,
  prev TEXT NOT NULL,
  hash TEXT NOT NULL,
  CONSTRAINT journal_batches_key PRIMARY KEY (chain, n)
);

CREATE TABLE prices (
  id TEXT PRIMARY KEY,
  provider TEXT NOT NULL,
  service TEXT NOT NULL,
  rates TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

-- The signed legs of every operation. `available` and `locked` are changes of the account. Over all rows they sum to 0.
CREATE VIEW entries AS
  SELECT chain, batch, position, kind, id, account,
    CASE kind
      WHEN 'lock' THEN -amount
      WHEN 'settle' THEN amount - charged
      WHEN 'transfer' THEN -amount
      ELSE amount
    END AS available,
    CASE kind WHEN 'lock' THEN amount WHEN 'transfer' THEN 0 ELSE -amount END AS locked
  FROM journal
  UNION ALL
  SELECT chain, batch, position, kind, id, counterparty,
    CASE kind WHEN 'settle' THEN charged - fee ELSE amount END, 0
  FROM journal WHERE kind IN ('settle', 'transfer')
  UNION ALL
  SELECT chain, batch, position, kind, id, 'fees', fee, 0
  FROM journal WHERE kind = 'settle' AND fee <> 0;
