-- The operator's fee at the time of the settlement, in basis points. NULL for locks that were settled before this
-- column existed.
ALTER TABLE locks ADD COLUMN fee_bps BIGINT;
