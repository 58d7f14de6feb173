-- When each offer of the gateway's own file was first seen. It is shown as the creation time of the service, and must
-- survive restarts. For connected providers this time is in provider_registrations.
CREATE TABLE offers_seen (
  -- Id of the offer: primitive, provider and name.
  offer TEXT PRIMARY KEY,
  first_seen BIGINT NOT NULL
);
