-- Batches at providers, which have lines of one batch of a client.
CREATE TABLE provider_batches (
  -- The provider's batch has it in its metadata, so it can be found there.
  id TEXT PRIMARY KEY,
  batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
  offer TEXT NOT NULL,
  -- The path of its requests below the address of the provider.
  path TEXT NOT NULL,
  -- collecting, ready, uploaded, creating, sent or ended.
  state TEXT NOT NULL,
  -- The ids of its file and of itself at the provider.
  file TEXT,
  remote TEXT,
  -- The time of its state. ready: not before it.
  since BIGINT NOT NULL
);
CREATE INDEX provider_batches_of_batch ON provider_batches (batch);
-- The states of a line are also: held (a provider gets or has it in a batch, and `content` is the request), answered
-- (`content` is the provider's answer, which is not settled yet), and waiting (for money that held lines have).
ALTER TABLE batch_lines ADD COLUMN provider_batch TEXT;
CREATE INDEX batch_lines_of_provider ON batch_lines (provider_batch) WHERE provider_batch IS NOT NULL;
