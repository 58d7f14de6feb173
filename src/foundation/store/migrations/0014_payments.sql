-- A chain for deposits and withdrawals, and the position up to which its deposits are booked.
CREATE TABLE chains (
  network TEXT PRIMARY KEY,
  asset TEXT NOT NULL,
  treasury TEXT NOT NULL,
  -- What the treasury held before the books began.
  opening BIGINT NOT NULL,
  cursor TEXT NOT NULL,
  height BIGINT NOT NULL,
  -- At the last comparison: what the treasury held, and what it should hold by the books.
  held BIGINT,
  booked BIGINT,
  compared_at BIGINT,
  -- The reason why payouts are halted; NULL while they are not.
  halted TEXT,
  CONSTRAINT chains_opening CHECK (opening >= 0)
);

-- Money that came in over a chain, or is about to. One row per signed payment or plain transfer. For a signed payment
-- the row is written before the payment is submitted to the chain.
CREATE TABLE deposits (
  -- For a signed payment, its identity (see SignedPayment.id). For a plain transfer, its network and event.
  id TEXT PRIMARY KEY,
  network TEXT NOT NULL,
  -- NULL: in suspense, because the account is not known.
  account TEXT,
  -- The sending address.
  payer TEXT NOT NULL,
  -- Micro-USD of the signed payment. For a plain transfer, what arrived.
  amount BIGINT NOT NULL,
  -- Everything that is needed to submit the payment again, as JSON; NULL for a plain transfer.
  payment TEXT,
  -- The content of the request that carried the payment, if the request had no other credential.
  request TEXT,
  state TEXT NOT NULL,
  transaction_id TEXT,
  -- The event on the chain, its height, and the amount that arrived. Written before the deposit is credited.
  event TEXT,
  height BIGINT,
  credited BIGINT,
  reason TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  -- When to look again; NULL after the final state.
  next_look_at BIGINT,
  looks BIGINT NOT NULL,
  CONSTRAINT deposits_state CHECK (state IN ('received', 'crediting', 'credited', 'final', 'failed', 'reversing', 'reversed')),
  CONSTRAINT deposits_amount CHECK (amount >= 0 AND (credited IS NULL OR credited > 0)),
  CONSTRAINT deposits_event UNIQUE (network, event)
);
CREATE INDEX deposits_due ON deposits (next_look_at) WHERE next_look_at IS NOT NULL;
CREATE INDEX deposits_account ON deposits (account, created_at);
CREATE INDEX deposits_open ON deposits (network, state) WHERE state IN ('received', 'crediting', 'credited', 'reversing');
CREATE INDEX deposits_suspense ON deposits (payer) WHERE account IS NULL;

-- Withdrawals over a chain: requested, taken from the account, signed, seen final on the chain.
CREATE TABLE withdrawals (
  id TEXT PRIMARY KEY,
  network TEXT NOT NULL,
  account TEXT NOT NULL,
  -- The ledger account that pays.
  source TEXT NOT NULL,
  address TEXT NOT NULL,
  amount BIGINT NOT NULL,
  -- 1: the gateway only signs, and the holder of the signed text submits it.
  handed_out BIGINT NOT NULL,
  state TEXT NOT NULL,
  -- Stored before it is broadcast.
  signed TEXT,
  transaction_id TEXT,
  height BIGINT,
  reason TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  next_look_at BIGINT,
  looks BIGINT NOT NULL,
  CONSTRAINT withdrawals_state CHECK (state IN ('requested', 'debited', 'queued', 'signed', 'paid', 'returning', 'returned', 'refused')),
  CONSTRAINT withdrawals_amount CHECK (amount > 0),
  CONSTRAINT withdrawals_signed CHECK (state NOT IN ('signed', 'paid') OR signed IS NOT NULL)
);
CREATE INDEX withdrawals_due ON withdrawals (next_look_at) WHERE next_look_at IS NOT NULL;
CREATE INDEX withdrawals_account ON withdrawals (account, created_at);
CREATE INDEX withdrawals_source ON withdrawals (source, created_at);

-- Wallets whose ownership was proven by an account that is not itself a wallet. A wallet belongs to one account.
CREATE TABLE wallets (
  wallet TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  bound_at BIGINT NOT NULL
);
CREATE INDEX wallets_account ON wallets (account);
