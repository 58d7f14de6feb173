SELECT COUNT(CASE state WHEN 'held' THEN 1 END) AS held, COUNT(CASE state WHEN 'settled' THEN 1 END) AS settled,
  COUNT(CASE state WHEN 'released' THEN 1 END) AS released, COUNT(CASE state WHEN 'expired' THEN 1 END) AS expired,
  CAST(COALESCE(SUM(charged), 0) AS BIGINT) AS charged, CAST(COALESCE(SUM(shortfall), 0) AS BIGINT) AS shortfall
FROM locks
