SELECT provider, document, revision FROM provider_registrations WHERE provider = $1
