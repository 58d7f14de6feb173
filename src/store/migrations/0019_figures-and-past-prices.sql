-- How often calls of an offer succeeded, failed, and were flagged: what the pages show of it, and what routing weighs it by.
CREATE TABLE offer_figures (
  -- Id of the offer: primitive, provider and name.
  offer TEXT NOT NULL,
  -- success or failure; flag:<name> of all time, flag for a minute.
  kind TEXT NOT NULL,
  -- When the minute began, in epoch milliseconds; 0 for all time.
  minute BIGINT NOT NULL,
  count BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (offer, kind, minute)
);
CREATE INDEX offer_figures_changed ON offer_figures (changed_at);
-- Partial: minutes age fast, and are removed by their time.
CREATE INDEX offer_figures_minutes ON offer_figures (minute) WHERE minute > 0;
CREATE INDEX offer_figures_totals ON offer_figures (changed_at) WHERE minute = 0;

-- JSON array: what services cost that were raised or taken back lately. A price that jumps is known by it.
ALTER TABLE provider_registrations ADD COLUMN past_prices TEXT NOT NULL DEFAULT '[]';
