-- The operator's part of the charge, in basis points, as it was when the lock was settled; NULL where it was settled before this was kept.
ALTER TABLE locks ADD COLUMN fee_bps BIGINT;
