-- People of the company, who sign in at its OpenID Connect provider. A row for each that a group gives access.
CREATE TABLE people (
  -- Of the issuer and the subject, see subjectAccount.
  account TEXT PRIMARY KEY,
  subject TEXT NOT NULL,
  name TEXT NOT NULL,
  -- JSON: rights of administrators, and accounts of organisations in which a group made the person a member.
  admin_roles TEXT NOT NULL,
  organisations TEXT NOT NULL,
  -- Encrypted. NULL if the provider gave none, or if it has ended.
  refresh_token TEXT,
  -- When the provider last said what the person may do, and when it is asked again.
  answered_at BIGINT NOT NULL,
  due_at BIGINT NOT NULL
);
CREATE INDEX people_due ON people (due_at);
CREATE INDEX people_answered ON people (answered_at);

-- Sessions of browsers once more, because neither engine changes a CHECK the same way.
CREATE TABLE browser_sessions (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  signed_in_by TEXT NOT NULL,
  -- SHA-256 of the API key or admin key that began the session. The session ends with its key. Of an administrator who
  -- signed in at the company's provider, the account.
  key_hash TEXT,
  -- CAIP-10, with the network of the signature.
  wallet TEXT,
  -- User-Agent of the browser, for the list of sessions.
  client TEXT NOT NULL,
  -- The network that the session began from, never the whole address. NULL for older sessions.
  network TEXT,
  -- Account of the person who signed in at the company's provider, and the provider's name of the session there.
  person TEXT,
  sid TEXT,
  created_at BIGINT NOT NULL,
  -- Written at most once a minute.
  seen_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT browser_sessions_signed_in_by
    CHECK (signed_in_by IN ('wallet', 'api_key', 'development', 'admin_key', 'person'))
);
INSERT INTO browser_sessions (id, account, signed_in_by, key_hash, wallet, client, created_at, seen_at, expires_at)
SELECT id, account, signed_in_by, key_hash, wallet, client, created_at, seen_at, expires_at FROM web_sessions;
DROP TABLE web_sessions;
ALTER TABLE browser_sessions RENAME TO web_sessions;
CREATE INDEX web_sessions_account ON web_sessions (account, created_at);
CREATE INDEX web_sessions_expire ON web_sessions (expires_at);
CREATE INDEX web_sessions_seen ON web_sessions (seen_at);
CREATE INDEX web_sessions_person ON web_sessions (person, sid) WHERE person IS NOT NULL;
