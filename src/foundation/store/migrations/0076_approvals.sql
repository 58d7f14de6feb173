-- Calls that a person accepts or refuses before any money is locked. A row per request of a key.
CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- The hash of the API key that asks, and the digest of its request.
  key TEXT NOT NULL,
  digest TEXT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  -- The name of a tool; NULL for the whole service.
  operation TEXT,
  -- The quote that fixes the price, and lets one call use the approval.
  quote TEXT NOT NULL,
  amount BIGINT NOT NULL,
  -- The beginning of the request, encrypted.
  preview TEXT NOT NULL,
  -- 'waiting', 'accepted' or 'refused'.
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  decided_at BIGINT,
  -- The account that has decided.
  decided_by TEXT
);
CREATE UNIQUE INDEX approvals_request ON approvals (key, digest);
CREATE INDEX approvals_account ON approvals (account, created_at);
CREATE INDEX approvals_expires_at ON approvals (expires_at);
ALTER TABLE api_keys ADD COLUMN ask_above BIGINT;
ALTER TABLE account_limits ADD COLUMN ask_above BIGINT;
