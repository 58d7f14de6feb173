-- For a provider's earnings by time. A partial index, so that held and failed calls are not in it. A lock enters it
-- once, when it is settled.
CREATE INDEX locks_earned ON locks (provider, resolved_at) WHERE provider IS NOT NULL;
