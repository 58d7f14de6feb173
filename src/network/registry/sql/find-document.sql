SELECT provider, document, past_prices, revision FROM provider_registrations WHERE provider = $1
