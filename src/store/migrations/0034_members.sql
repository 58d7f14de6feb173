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

-- The member that a key is of. It works as long as that one is a member. NULL: it is of the account itself.
ALTER TABLE api_keys ADD COLUMN member TEXT;
CREATE INDEX api_keys_member ON api_keys (account, member) WHERE member IS NOT NULL;
