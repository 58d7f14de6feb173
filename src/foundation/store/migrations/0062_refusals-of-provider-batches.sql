-- How often a provider had no room for a batch. The states are also: doubted (sent, but since `since` the provider does
-- not know it, or shows no results of it), and closing (its lines have ended, and its files are being deleted).
ALTER TABLE provider_batches ADD COLUMN refusals BIGINT NOT NULL DEFAULT 0;
