-- The digest of the request that made a batch, if it had an idempotency key: another request with the key is refused.
ALTER TABLE batches ADD COLUMN request TEXT;
