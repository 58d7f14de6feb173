-- The row comes back as it is, also where it was there before.
INSERT INTO offers_seen (offer, first_seen) VALUES ($1, $2)
ON CONFLICT (offer) DO UPDATE SET first_seen = offers_seen.first_seen
RETURNING offer, first_seen
