-- When each offer of the gateway's own file was first there: it is shown as the time that the service was made, whenever a gateway starts. Offers of
-- connected providers have theirs in provider_registrations.
CREATE TABLE offers_seen (
  -- Id of the offer: primitive, provider and name.
  offer TEXT PRIMARY KEY,
  first_seen BIGINT NOT NULL
);
