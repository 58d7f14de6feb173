-- Archives of the ledger: each is a file with all calls and movements before a day. Their rows are dropped here, and
-- the audit continues from the balances at the end of the newest archive.
CREATE TABLE archives (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  -- Where it was written.
  folder TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  -- Digests of the file, and of its content without the seal.
  sha256 TEXT NOT NULL,
  content TEXT NOT NULL,
  -- The first moment, and the one after the last, in epoch milliseconds. 0 for the beginning of the books.
  begins_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  -- Digests of the rows below with its number: of what holds at its end, and of the spending. And of the transfers of
  -- its time, which are kept.
  closing TEXT NOT NULL,
  spending TEXT NOT NULL,
  transfers TEXT NOT NULL,
  settled BIGINT NOT NULL,
  released BIGINT NOT NULL,
  expired BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  shortfall BIGINT NOT NULL,
  operations BIGINT NOT NULL,
  made_at BIGINT NOT NULL,
  -- When the last of its rows was dropped; NULL before.
  dropped_at BIGINT
);

-- Rows with a number that `archives` does not have are of an archive that was not finished. They count for nothing.

-- The balances of all accounts at the end of an archive. Only those of the newest are kept.
CREATE TABLE archived_balances (
  archive BIGINT NOT NULL,
  account TEXT NOT NULL,
  available BIGINT NOT NULL,
  locked BIGINT NOT NULL,
  PRIMARY KEY (archive, account)
);

-- Movements of calls that were still open at the end of an archive. They are in the archive, and the calls are not.
-- Only those of the newest archive are kept.
CREATE TABLE archived_movements (
  archive BIGINT NOT NULL,
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
  PRIMARY KEY (archive, chain, batch, position)
);

-- The last archived group of each chain, and where it ends in the log of the embedded ledger. Only those of the newest
-- archive are kept.
CREATE TABLE archived_chains (
  archive BIGINT NOT NULL,
  chain TEXT NOT NULL,
  n BIGINT NOT NULL,
  hash TEXT NOT NULL,
  position BIGINT NOT NULL,
  PRIMARY KEY (archive, chain)
);

-- Calls that had ended before the end of the newest archive, and stayed because a call above or under them had not.
CREATE TABLE archived_kept (
  archive BIGINT NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (archive, id)
);

-- What the calls of an archive were charged, by the budgets that count them.
CREATE TABLE archived_spending (
  archive BIGINT NOT NULL,
  account TEXT NOT NULL,
  budget TEXT NOT NULL,
  charged BIGINT NOT NULL,
  PRIMARY KEY (account, budget, archive)
);

-- The ids of archived calls, which are used for ever. The calls of one process have ids of one prefix and a counter,
-- and are one row with the first and the last of them. Any other id is a row with empty ends.
CREATE TABLE archived_ids (
  prefix TEXT PRIMARY KEY,
  first TEXT NOT NULL,
  last TEXT NOT NULL
);

-- The same by account and archive: where a call is.
CREATE TABLE archived_calls (
  account TEXT NOT NULL,
  prefix TEXT NOT NULL,
  archive BIGINT NOT NULL,
  first TEXT NOT NULL,
  last TEXT NOT NULL,
  PRIMARY KEY (account, prefix, archive)
);
CREATE INDEX archived_calls_prefix ON archived_calls (prefix);

-- What providers earned with archived calls, by UTC day.
CREATE TABLE archived_earnings (
  archive BIGINT NOT NULL,
  provider TEXT NOT NULL,
  day BIGINT NOT NULL,
  service TEXT NOT NULL,
  -- The beginning of the calls' detail, which has the primitive.
  opening TEXT NOT NULL,
  requests BIGINT NOT NULL,
  earned BIGINT NOT NULL,
  -- How many of the calls had a flag, as a JSON object.
  flags TEXT NOT NULL,
  PRIMARY KEY (provider, day, service, opening, archive)
);
