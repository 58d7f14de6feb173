-- Balances of treasuries, read while their blocks were new, because some nodes do not keep old state. A snapshot is
-- used when its block is final, and removed when the books are past it.
CREATE TABLE treasury_snapshots (
  network TEXT NOT NULL,
  -- The treasury's address.
  treasury TEXT NOT NULL,
  -- The block, in the chain's own form.
  cursor TEXT NOT NULL,
  height BIGINT NOT NULL,
  balance BIGINT NOT NULL,
  PRIMARY KEY (network, treasury, cursor)
);
