-- How many charges of a line were given back, because its gateway ended before the answer was stored.
ALTER TABLE batch_lines ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;
