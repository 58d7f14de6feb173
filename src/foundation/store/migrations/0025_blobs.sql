-- Large results, stored as files that outlive their call. A row names the file, the gateway whose disk has it, and its
-- expiry.
CREATE TABLE blobs (
  id TEXT PRIMARY KEY,
  -- Digest that identifies the source of the content. Each source has one file.
  source TEXT NOT NULL UNIQUE,
  account TEXT NOT NULL,
  state TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  type TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  crc32 BIGINT NOT NULL,
  -- JSON text of the writer.
  notes TEXT NOT NULL,
  holder TEXT NOT NULL,
  -- While the file is being written: after this time another gateway may write it instead.
  lease_until BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT blobs_state CHECK (state IN ('writing', 'stored'))
);
CREATE INDEX blobs_of_account ON blobs (account);
CREATE INDEX blobs_expire ON blobs (expires_at);
-- The addresses from which other gateways fetch files. A single gateway has none.
CREATE TABLE blob_holders (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL
);
