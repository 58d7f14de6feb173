DELETE FROM offer_figures WHERE (offer, kind, minute) IN (
  SELECT offer, kind, minute FROM offer_figures WHERE minute > 0 AND minute < $1 ORDER BY minute LIMIT $2
)
RETURNING offer
