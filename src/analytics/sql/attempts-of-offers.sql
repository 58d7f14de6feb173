-- $1: a JSON object of arrays, each with the id of one offer.
SELECT offer, day, successes, failures FROM offer_days
WHERE offer IN (SELECT value ->> 0 FROM json_each($1)) AND day BETWEEN $2 AND $3
