-- Who may act for an account besides its own credentials. An account with members is an organisation.
CREATE TABLE members (
  account TEXT NOT NULL,
  -- The account that the member signs in as.
  member TEXT NOT NULL,
  role TEXT NOT NULL,
  -- For people.
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account, member),
  CONSTRAINT members_role CHECK (role IN ('viewer', 'member', 'admin', 'owner'))
);
CREATE INDEX members_member ON members (member, created_at);

-- The account that made an organisation: an account makes a few. NULL: the operator did, or nobody had to.
ALTER TABLE consumers ADD COLUMN made_by TEXT;
CREATE INDEX consumers_made_by ON consumers (made_by) WHERE made_by IS NOT NULL;

-- The member that a key is of. It works as long as that one is a member who may have keys. NULL: it is of the account itself.
ALTER TABLE api_keys ADD COLUMN member TEXT;
CREATE INDEX api_keys_member ON api_keys (account, member) WHERE member IS NOT NULL;
