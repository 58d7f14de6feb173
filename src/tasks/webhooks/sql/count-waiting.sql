SELECT count(*) AS deliveries, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM webhook_deliveries WHERE body IS NOT NULL
