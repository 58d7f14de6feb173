-- What calls were said to cost, until each is used or over.
CREATE TABLE quotes (
  id TEXT PRIMARY KEY,
  -- The only account that it binds; that of strangers binds whoever pays for it.
  account TEXT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  -- JSON: [{offer, price, facts}], all of one cost. A price is the id of a price version, facts are what it follows from.
  offers TEXT NOT NULL,
  amount BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  valid_until BIGINT NOT NULL,
  -- The call that uses it; NULL for none.
  call_id TEXT,
  used_at BIGINT
);
CREATE INDEX quotes_account ON quotes (account, valid_until);
CREATE INDEX quotes_valid_until ON quotes (valid_until);
