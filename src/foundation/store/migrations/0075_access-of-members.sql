-- What the keys of a member may call: a JSON array of patterns; null is everything.
ALTER TABLE account_limits ADD COLUMN allowed_services TEXT;
