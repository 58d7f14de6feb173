SELECT count(*) AS deliveries, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM webhook_deliveries WHERE account = $1 AND body IS NOT NULL
