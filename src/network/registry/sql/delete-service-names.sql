DELETE FROM service_names WHERE provider = $1
  AND EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $2)
