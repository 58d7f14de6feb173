SELECT 1 FROM provider_connections WHERE provider = $1
