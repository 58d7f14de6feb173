-- Files that clients upload for batches, and the files with the results of batches.
CREATE TABLE files (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- The part of the account that owns it: a restricted key. NULL: the whole account.
  part TEXT,
  purpose TEXT NOT NULL,
  -- Sealed for the account.
  name TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  -- The bytes that it takes in the database.
  room BIGINT NOT NULL,
  -- writing, or stored.
  state TEXT NOT NULL,
  -- The batch whose lines in the state `results` are its content. NULL: its content are its parts.
  batch TEXT,
  results TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX files_of_account ON files (account, created_at, id);
CREATE INDEX files_expire ON files (expires_at);
-- The content of an uploaded file, in parts that are compressed, and then sealed for the account.
CREATE TABLE file_parts (
  file TEXT NOT NULL REFERENCES files (id) ON DELETE CASCADE,
  n BIGINT NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (file, n)
);
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  part TEXT,
  -- The hash of the API key that made it. NULL: a wallet, a session or an access token.
  api_key TEXT,
  -- The dialect of the address that it was made at: openai or own.
  dialect TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  input_file TEXT NOT NULL,
  output_file TEXT NOT NULL,
  error_file TEXT NOT NULL,
  -- The most that it may cost, in micro-USD, by its request. NULL: it does not say.
  max_cost BIGINT,
  -- How long its results are kept, in milliseconds.
  keep_ms BIGINT NOT NULL,
  -- JSON texts, sealed for the account.
  metadata TEXT,
  errors TEXT,
  status TEXT NOT NULL,
  -- The lock that pays for its lines, and the amount of it. NULL until its lines are checked.
  lock_id TEXT,
  amount BIGINT,
  model TEXT,
  total BIGINT NOT NULL,
  completed BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  -- JSON text of the tokens that its lines used. NULL until its end.
  usage TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  in_progress_at BIGINT,
  cancelling_at BIGINT,
  finalizing_at BIGINT,
  ended_at BIGINT,
  -- The gateway that works on it, and until when. It is due then. NULL: it has ended.
  claim TEXT,
  due_at BIGINT
);
CREATE INDEX batches_of_account ON batches (account, created_at, id);
CREATE INDEX batches_due ON batches (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX batches_ended ON batches (ended_at) WHERE ended_at IS NOT NULL;
-- The lines of a batch that have begun. `n`: the number of the line in the file.
CREATE TABLE batch_lines (
  batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
  n BIGINT NOT NULL,
  -- The call that makes it, or has made it.
  call_id TEXT NOT NULL,
  -- running, completed or failed.
  state TEXT NOT NULL,
  -- The line of the result, compressed and sealed, with its size as a client reads it. NULL while it runs.
  content BYTEA,
  bytes BIGINT NOT NULL,
  prompt BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  completion BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  PRIMARY KEY (batch, n)
);
