-- A chain that money comes and goes on, and how far what came in is in the books.
CREATE TABLE chains (
  network TEXT PRIMARY KEY,
  asset TEXT NOT NULL,
  treasury TEXT NOT NULL,
  -- Held by the treasury before the books began.
  opening BIGINT NOT NULL,
  cursor TEXT NOT NULL,
  height BIGINT NOT NULL,
  -- What the treasury held and what the books say that it holds, when they were last compared.
  held BIGINT,
  booked BIGINT,
  compared_at BIGINT,
  -- Why nothing is paid out; NULL while it is.
  halted TEXT,
  CONSTRAINT chains_opening CHECK (opening >= 0)
);

-- Money that came in over a chain, or is about to: one row for one signed payment or plain transfer, made before anything is given to the chain.
CREATE TABLE deposits (
  -- Of a signed payment what makes it one (see SignedPayment.id), of a plain transfer its network and event.
  id TEXT PRIMARY KEY,
  network TEXT NOT NULL,
  -- NULL: not attributed, in suspense.
  account TEXT,
  -- Sending address.
  payer TEXT NOT NULL,
  -- Micro-USD that were promised; of a plain transfer what arrived.
  amount BIGINT NOT NULL,
  -- All that it takes to submit the payment again, as JSON; NULL for a plain transfer.
  payment TEXT,
  -- What the request asked for that it came with, where it had no other credential.
  request TEXT,
  state TEXT NOT NULL,
  transaction_id TEXT,
  -- Where the chain shows it, and what arrived. Noted before it is credited.
  event TEXT,
  height BIGINT,
  credited BIGINT,
  reason TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  -- When to look again; NULL once nothing can change.
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

-- Money on its way out over a chain: asked for, taken from its account, signed, seen final on the chain.
CREATE TABLE withdrawals (
  id TEXT PRIMARY KEY,
  network TEXT NOT NULL,
  account TEXT NOT NULL,
  -- Ledger account that it is taken from.
  source TEXT NOT NULL,
  address TEXT NOT NULL,
  amount BIGINT NOT NULL,
  -- 1: the gateway signs, and whoever has the text submits it.
  handed_out BIGINT NOT NULL,
  state TEXT NOT NULL,
  -- Kept before it is broadcast.
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

-- Wallets that an account without one of its own has proven to be its. A wallet is one account's.
CREATE TABLE wallets (
  wallet TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  bound_at BIGINT NOT NULL
);
CREATE INDEX wallets_account ON wallets (account);
