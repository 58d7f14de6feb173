-- name: addFigure
INSERT INTO offer_figures (offer, kind, minute, count, changed_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (offer, kind, minute) DO UPDATE SET count = offer_figures.count + excluded.count, changed_at = excluded.changed_at
RETURNING offer, kind, minute, count

-- name: addOfferDay
INSERT INTO offer_days (offer, day, successes, failures, prompt, cached, prompt_charged) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (offer, day) DO UPDATE SET successes = offer_days.successes + excluded.successes, failures = offer_days.failures + excluded.failures,
  prompt = offer_days.prompt + excluded.prompt, cached = offer_days.cached + excluded.cached, prompt_charged = offer_days.prompt_charged + excluded.prompt_charged
RETURNING offer, day, prompt, cached, prompt_charged

-- name: promptsSince
SELECT offer, day, prompt, cached, prompt_charged FROM offer_days WHERE day >= $1 AND prompt > 0

-- name: changedFigures
-- Sorted by their changes, so the offer with the newest change comes last.
SELECT offer, kind, minute, count FROM offer_figures
WHERE changed_at >= $1 AND (minute = 0 OR minute >= $2)
ORDER BY changed_at

-- name: deleteOldMinutes
DELETE FROM offer_figures WHERE (offer, kind, minute) IN (
  SELECT offer, kind, minute FROM offer_figures WHERE minute > 0 AND minute < $1 ORDER BY minute LIMIT $2
)
RETURNING offer

-- name: deleteExcessTotals
-- Keeps the $2 totals that changed last.
DELETE FROM offer_figures WHERE minute = 0 AND (offer, kind, minute) IN (
  SELECT offer, kind, minute FROM offer_figures WHERE minute = 0 ORDER BY changed_at DESC LIMIT $1 OFFSET $2
)
RETURNING offer
