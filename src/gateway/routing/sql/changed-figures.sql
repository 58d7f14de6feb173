-- Sorted by their changes, so the offer with the newest change comes last.
SELECT offer, kind, minute, count FROM offer_figures
WHERE changed_at >= $1 AND (minute = 0 OR minute >= $2)
ORDER BY changed_at
