-- Balances of treasuries that were read while their blocks were new, for nodes that keep no old state. One is used when its block is final, and removed when the books are past it.
CREATE TABLE treasury_snapshots (
  network TEXT NOT NULL,
  -- Its address.
  treasury TEXT NOT NULL,
  -- The block, as the chain names it.
  cursor TEXT NOT NULL,
  height BIGINT NOT NULL,
  balance BIGINT NOT NULL,
  PRIMARY KEY (network, treasury, cursor)
);
