-- Served calls whose cost is unknown. Rows of earlier versions without any cost have only such calls; the others have
-- none that are known to be.
ALTER TABLE offer_sums ADD COLUMN uncosted BIGINT NOT NULL DEFAULT 0;
UPDATE offer_sums SET uncosted = requests WHERE cost = 0 AND cost_base = 0;
