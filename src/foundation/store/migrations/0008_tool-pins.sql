-- The digest of each tool's definition when the tool was last listed. A definition is untrusted text, so a change of it
-- is shown. One row per tool, however often it changes.
CREATE TABLE tool_pins (
  provider TEXT NOT NULL,
  service TEXT NOT NULL,
  -- The tool's name, or a digest of the name if a column cannot hold it.
  tool TEXT NOT NULL,
  -- Digest of the definition, in hex.
  sha256 TEXT NOT NULL,
  -- The number of the definition, from 1.
  version BIGINT NOT NULL,
  first_seen BIGINT NOT NULL,
  -- NULL at version 1.
  changed_at BIGINT,
  CONSTRAINT tool_pins_key PRIMARY KEY (provider, service, tool)
);
