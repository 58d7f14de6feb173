-- Sign-ins that nobody has finished are counted by their place too, as registrations are. The index has all that the
-- count reads.
DROP INDEX authorization_state_by_network;
CREATE INDEX authorization_state_by_network ON authorization_state (kind, network, expires_at) WHERE network IS NOT NULL;
