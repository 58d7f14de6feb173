DELETE FROM service_days
