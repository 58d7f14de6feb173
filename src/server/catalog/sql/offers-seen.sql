-- name: putOfferSeen
-- Returns the row unchanged if it already exists. The update without a change makes RETURNING give it.
INSERT INTO offers_seen (offer, first_seen) VALUES ($1, $2)
ON CONFLICT (offer) DO UPDATE SET first_seen = offers_seen.first_seen
RETURNING offer, first_seen
