-- What a claim of use is held against: when the task was asked for (null: when it was noted), and the bytes of its messages.
ALTER TABLE tasks ADD COLUMN asked_at BIGINT;
ALTER TABLE tasks ADD COLUMN sent_bytes BIGINT NOT NULL DEFAULT 0;
