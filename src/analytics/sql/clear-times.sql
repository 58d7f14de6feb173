DELETE FROM service_times
