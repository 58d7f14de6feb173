-- What gateways on PostgreSQL have credited to the fees and to providers. Each gateway adds to rows of a stripe of its
-- own, so they do not wait for one another. The balance of an account is its row of `accounts` and all of its rows here.
-- The embedded ledger has no rows here.
CREATE TABLE account_stripes (
  account TEXT NOT NULL,
  stripe BIGINT NOT NULL,
  available BIGINT NOT NULL,
  PRIMARY KEY (account, stripe),
  CONSTRAINT account_stripes_available CHECK (available >= 0)
);
