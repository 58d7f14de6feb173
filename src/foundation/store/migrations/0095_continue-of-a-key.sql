-- 0095_continue-of-a-key.sql
-- Whether streams of a key that break off are gone on with: 1 or 0. NULL: as the model says.
ALTER TABLE api_keys ADD COLUMN continues BIGINT;
