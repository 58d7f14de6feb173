-- Tags of all calls of a key, or of the keys of a member: a JSON object; null for none.
ALTER TABLE api_keys ADD COLUMN tags TEXT;
ALTER TABLE account_limits ADD COLUMN tags TEXT;
