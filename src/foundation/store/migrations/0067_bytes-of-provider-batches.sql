-- The bytes of the requests of a batch, 0 before they have been read.
ALTER TABLE provider_batches ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
CREATE INDEX provider_batches_there ON provider_batches (state) WHERE state IN ('uploaded', 'creating', 'sent', 'doubted');
