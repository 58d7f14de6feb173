-- Files that outlive their call: large results. The row names the file, the gateway whose disk has it, and until when it is kept.
CREATE TABLE blobs (
  id TEXT PRIMARY KEY,
  -- Digest of what the file is the content of: each has one file.
  source TEXT NOT NULL UNIQUE,
  account TEXT NOT NULL,
  state TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  type TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  crc32 BIGINT NOT NULL,
  -- Of whoever wrote it; JSON text.
  notes TEXT NOT NULL,
  holder TEXT NOT NULL,
  -- While it is written: from then on another gateway may write it instead.
  lease_until BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT blobs_state CHECK (state IN ('writing', 'stored'))
);
CREATE INDEX blobs_of_account ON blobs (account);
CREATE INDEX blobs_expire ON blobs (expires_at);
-- The addresses at which other gateways ask for files. A gateway that stands alone has none.
CREATE TABLE blob_holders (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL
);
