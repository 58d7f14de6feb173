SELECT COUNT(*) AS accounts,
  CAST(COALESCE(SUM(CASE WHEN id LIKE 'escrow:%' THEN available ELSE 0 END), 0) AS BIGINT) AS escrow_available,
  CAST(COALESCE(SUM(locked), 0) AS BIGINT) AS escrow_locked,
  CAST(COALESCE(SUM(CASE WHEN id LIKE 'earnings:%' THEN available ELSE 0 END), 0) AS BIGINT) AS earnings,
  CAST(COALESCE(SUM(CASE WHEN id = 'fees' THEN available ELSE 0 END), 0) AS BIGINT) AS fees,
  CAST(COALESCE(SUM(CASE WHEN id = 'suspense' THEN available ELSE 0 END), 0) AS BIGINT) AS suspense,
  CAST(COALESCE(SUM(CASE WHEN id LIKE 'treasury:%' THEN available ELSE 0 END), 0) AS BIGINT) AS treasury
FROM accounts
