-- What each tool said of itself when it was last listed, as a digest: its words are a stranger's, and a change of them is shown. One row a tool,
-- however often it changes.
CREATE TABLE tool_pins (
  provider TEXT NOT NULL,
  service TEXT NOT NULL,
  -- The tool's name, or a digest of it where a column cannot hold it.
  tool TEXT NOT NULL,
  -- Of the definition, in hex.
  sha256 TEXT NOT NULL,
  -- Counts the definitions, from 1.
  version BIGINT NOT NULL,
  first_seen BIGINT NOT NULL,
  -- NULL at version 1.
  changed_at BIGINT,
  CONSTRAINT tool_pins_key PRIMARY KEY (provider, service, tool)
);
