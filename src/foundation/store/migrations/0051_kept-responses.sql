-- Responses of the Responses API that are kept for later requests.
CREATE TABLE kept_responses (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- The part of the account that owns it: the call of a run token, or a restricted key. NULL: the whole account.
  part TEXT,
  service TEXT NOT NULL,
  -- The response that its conversation continues; NULL for none.
  previous TEXT,
  -- The items of the request and the response object, both sealed for the account.
  input TEXT NOT NULL,
  response TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX kept_responses_of_account ON kept_responses (account, expires_at, bytes);
CREATE INDEX kept_responses_expire ON kept_responses (expires_at);
-- The items that have an id of their provider or client. Ids that the gateway makes contain the id of their response.
CREATE TABLE kept_items (
  response TEXT NOT NULL REFERENCES kept_responses (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  account TEXT NOT NULL,
  PRIMARY KEY (response, id)
);
CREATE INDEX kept_items_of_account ON kept_items (account, id);
