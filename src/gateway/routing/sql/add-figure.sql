INSERT INTO offer_figures (offer, kind, minute, count, changed_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (offer, kind, minute) DO UPDATE SET count = offer_figures.count + excluded.count, changed_at = excluded.changed_at
RETURNING offer, kind, minute, count
