-- During the handover to another treasury: the previous address, whose money is still watched. Otherwise NULL.
ALTER TABLE chains ADD COLUMN previous TEXT;
-- 1: at the last comparison the previous address held nothing, and nothing has come to it since.
ALTER TABLE chains ADD COLUMN previous_empty BIGINT NOT NULL DEFAULT 0;
-- Id of the transfer that books the opening; NULL: the id for the first treasury.
ALTER TABLE chains ADD COLUMN opening_id TEXT;

-- The part of a withdrawal that the operator keeps. The address receives the rest.
ALTER TABLE withdrawals ADD COLUMN fee BIGINT NOT NULL DEFAULT 0;

-- The operator's actions on treasuries. Each is stored first, then done step by step.
CREATE TABLE treasury_acts (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  -- '' if the action concerns no chain.
  network TEXT NOT NULL,
  amount BIGINT NOT NULL,
  -- The ledger account that bears a loss or gets a surplus; NULL for moves.
  bearer TEXT,
  -- For a move: the target network and address, and the address that sends it there (NULL: unknown).
  to_network TEXT,
  address TEXT,
  sender TEXT,
  -- The most by which the arriving amount may be lower.
  fee_max BIGINT NOT NULL,
  -- The deposit as which the money arrived.
  deposit TEXT,
  arrived BIGINT,
  -- The operator's own reference.
  reference TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT treasury_acts_amount CHECK (amount > 0 AND fee_max >= 0),
  CONSTRAINT treasury_acts_kind CHECK (kind IN ('write_off', 'write_up', 'make_good', 'move')),
  CONSTRAINT treasury_acts_state CHECK (state IN ('requested', 'agreed', 'sending', 'sent', 'done', 'refused'))
);
-- Only one action at a time can book a difference.
CREATE UNIQUE INDEX treasury_acts_booking ON treasury_acts (network) WHERE kind <> 'move' AND state IN ('requested', 'agreed');
CREATE UNIQUE INDEX treasury_acts_deposit ON treasury_acts (deposit) WHERE deposit IS NOT NULL;
CREATE INDEX treasury_acts_created ON treasury_acts (created_at);
