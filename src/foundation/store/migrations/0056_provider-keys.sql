-- Keys that accounts have at providers of the operator's own file. A key is sealed for its account, its provider and the
-- address that it may be sent to.
CREATE TABLE provider_keys (
  account TEXT NOT NULL,
  provider TEXT NOT NULL,
  address TEXT NOT NULL,
  sealed TEXT NOT NULL,
  last_four TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account, provider, address)
);
