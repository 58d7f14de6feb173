-- The last prices of models that `[[providers]]` of the operator's file offer, and the lowest recent ones before, by the
-- provider. An update of the list of prices is compared with them.
CREATE TABLE listed_prices (
  provider TEXT PRIMARY KEY,
  document TEXT NOT NULL,
  past_prices TEXT NOT NULL,
  revision BIGINT NOT NULL
);
