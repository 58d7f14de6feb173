-- While a treasury hands over to another: the address before, whose money is still watched. NULL at all other times.
ALTER TABLE chains ADD COLUMN previous TEXT;
-- 1: at the last comparison the address before held nothing, and nothing came to it since.
ALTER TABLE chains ADD COLUMN previous_empty BIGINT NOT NULL DEFAULT 0;
-- Id of the transfer that books the opening; NULL: that of the first treasury.
ALTER TABLE chains ADD COLUMN opening_id TEXT;

-- Of the amount of a withdrawal, what the operator keeps: the address is paid the rest.
ALTER TABLE withdrawals ADD COLUMN fee BIGINT NOT NULL DEFAULT 0;

-- What the operator does with treasuries: written down first, then done step by step.
CREATE TABLE treasury_acts (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  -- '' for what concerns no chain.
  network TEXT NOT NULL,
  amount BIGINT NOT NULL,
  -- Ledger account that bears a loss, or takes a surplus; NULL for moves.
  bearer TEXT,
  -- Of a move: where it goes, to which address, and from which address it comes out there (NULL: unknown).
  to_network TEXT,
  address TEXT,
  sender TEXT,
  -- The most that may be missing of what arrives.
  fee_max BIGINT NOT NULL,
  -- The deposit that it arrived as.
  deposit TEXT,
  arrived BIGINT,
  -- The operator's name for it.
  reference TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT treasury_acts_amount CHECK (amount > 0 AND fee_max >= 0),
  CONSTRAINT treasury_acts_kind CHECK (kind IN ('write_off', 'write_up', 'make_good', 'move')),
  CONSTRAINT treasury_acts_state CHECK (state IN ('requested', 'agreed', 'sending', 'sent', 'done', 'refused'))
);
-- A difference is booked by one act at a time.
CREATE UNIQUE INDEX treasury_acts_booking ON treasury_acts (network) WHERE kind <> 'move' AND state IN ('requested', 'agreed');
CREATE UNIQUE INDEX treasury_acts_deposit ON treasury_acts (deposit) WHERE deposit IS NOT NULL;
CREATE INDEX treasury_acts_created ON treasury_acts (created_at);
