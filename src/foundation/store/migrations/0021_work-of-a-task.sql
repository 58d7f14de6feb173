-- The measure for an agent's usage claim: when the task was requested (NULL: when it was recorded), and the bytes of
-- its messages.
ALTER TABLE tasks ADD COLUMN asked_at BIGINT;
ALTER TABLE tasks ADD COLUMN sent_bytes BIGINT NOT NULL DEFAULT 0;
