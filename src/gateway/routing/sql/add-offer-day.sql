INSERT INTO offer_days (offer, day, successes, failures) VALUES ($1, $2, $3, $4)
ON CONFLICT (offer, day) DO UPDATE SET successes = offer_days.successes + excluded.successes, failures = offer_days.failures + excluded.failures
