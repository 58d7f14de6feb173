-- Prompt tokens of an offer per day, how many of them its provider had in a cache, and what was charged for all of them
-- (micro-USD). Only of offers whose cached tokens cost less.
ALTER TABLE offer_days ADD COLUMN prompt BIGINT NOT NULL DEFAULT 0;
ALTER TABLE offer_days ADD COLUMN cached BIGINT NOT NULL DEFAULT 0;
ALTER TABLE offer_days ADD COLUMN prompt_charged BIGINT NOT NULL DEFAULT 0;
