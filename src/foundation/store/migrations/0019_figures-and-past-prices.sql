-- How often calls of an offer succeeded, failed and were flagged. The pages show these figures, and routing uses them
-- as weights.
CREATE TABLE offer_figures (
  -- Id of the offer: primitive, provider and name.
  offer TEXT NOT NULL,
  -- success or failure; flag:<name> for all time, flag for a minute.
  kind TEXT NOT NULL,
  -- The beginning of the minute in epoch milliseconds; 0 for all time.
  minute BIGINT NOT NULL,
  count BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (offer, kind, minute)
);
CREATE INDEX offer_figures_changed ON offer_figures (changed_at);
-- A partial index for the removal of old minutes.
CREATE INDEX offer_figures_minutes ON offer_figures (minute) WHERE minute > 0;
CREATE INDEX offer_figures_totals ON offer_figures (changed_at) WHERE minute = 0;

-- JSON array of the earlier prices of services that were raised or withdrawn recently. It shows that a price has
-- jumped.
ALTER TABLE provider_registrations ADD COLUMN past_prices TEXT NOT NULL DEFAULT '[]';
