-- What a provider earned, by time. Partial: a lock enters it once, when it is settled, and held or failed calls never do.
CREATE INDEX locks_earned ON locks (provider, resolved_at) WHERE provider IS NOT NULL;
