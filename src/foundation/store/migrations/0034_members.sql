-- Accounts that may act for another account, besides its own credentials. An account with members is an organisation.
CREATE TABLE members (
  account TEXT NOT NULL,
  -- The account with which the member signs in.
  member TEXT NOT NULL,
  role TEXT NOT NULL,
  -- A display name.
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account, member),
  CONSTRAINT members_role CHECK (role IN ('viewer', 'member', 'admin', 'owner'))
);
CREATE INDEX members_member ON members (member, created_at);

-- The account that created an organisation. It limits the number of organisations per account. NULL: the operator
-- created it, or it was not created explicitly.
ALTER TABLE consumers ADD COLUMN made_by TEXT;
CREATE INDEX consumers_made_by ON consumers (made_by) WHERE made_by IS NOT NULL;

-- The member that owns a key. The key works as long as this member may have keys. NULL: the key belongs to the account
-- itself.
ALTER TABLE api_keys ADD COLUMN member TEXT;
CREATE INDEX api_keys_member ON api_keys (account, member) WHERE member IS NOT NULL;
