-- The id of the client of a grant, which ends with its last grant. NULL on all other rows, and on grants from before.
ALTER TABLE authorization_state ADD COLUMN client TEXT;
CREATE INDEX authorization_state_by_client ON authorization_state (client) WHERE client IS NOT NULL;
