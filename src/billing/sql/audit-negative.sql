SELECT id, available, locked FROM accounts
WHERE locked < 0 OR (available < 0 AND id NOT LIKE 'treasury:%')
ORDER BY id LIMIT 20
