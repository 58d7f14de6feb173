-- Quotes: fixed prices of future calls, until each quote is used or expired.
CREATE TABLE quotes (
  id TEXT PRIMARY KEY,
  -- Only this account can use the quote. A quote of an anonymous caller can be used by whoever pays for the call.
  account TEXT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  -- JSON: [{offer, price, facts}], all with the same cost. `price` is the id of a price version, and `facts` are what
  -- the cost is computed from.
  offers TEXT NOT NULL,
  amount BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  valid_until BIGINT NOT NULL,
  -- The call that uses the quote; NULL if unused.
  call_id TEXT,
  used_at BIGINT
);
CREATE INDEX quotes_account ON quotes (account, valid_until);
CREATE INDEX quotes_valid_until ON quotes (valid_until);
