-- `network`: the widest network that the connection was dialled from, see networkLevels. NULL before this column.
-- `bytes`: characters of the texts. Both say whose registrations make way, see departed.ts.
ALTER TABLE provider_connections ADD COLUMN network TEXT;
ALTER TABLE provider_registrations ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE provider_registrations SET bytes = length(document) + length(past_prices);
CREATE INDEX provider_connections_left ON provider_connections (left_at) WHERE left_at IS NOT NULL;
CREATE INDEX prices_provider ON prices (provider);
