-- Keeps the $2 totals that changed last.
DELETE FROM offer_figures WHERE minute = 0 AND (offer, kind, minute) IN (
  SELECT offer, kind, minute FROM offer_figures WHERE minute = 0 ORDER BY changed_at DESC LIMIT $1 OFFSET $2
)
RETURNING offer
