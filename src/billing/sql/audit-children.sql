-- Locks under a parent that do not fit the parent or the journal. Each must have drawn its amount from its parent once.
-- If the parent was held when the lock ended, the lock must have given back its uncharged rest once. A parent that is
-- held now was held then. For a parent that has ended, the times of different gateways cannot prove the order, so the
-- rest may be given back or not.
SELECT id
FROM (
  SELECT child.id, 1 AS written, 0 AS drew, 0 AS gave, child.parent, 'escrow:' || child.account AS account, child.amount, 0 AS given,
    CASE child.state WHEN 'held' THEN 0 ELSE child.amount - child.lent - child.charged END AS rest,
    CASE parent.state WHEN 'held' THEN 1 ELSE 0 END AS must_give,
    CASE WHEN parent.account = child.account AND parent.depth + 1 = child.depth AND child.drawn = 0
      AND COALESCE(parent.budget, '') = COALESCE(child.budget, '') THEN 0 ELSE 1 END AS misfit
  FROM locks AS child LEFT JOIN locks AS parent ON parent.id = child.parent
  WHERE child.parent IS NOT NULL
  UNION ALL
  SELECT id, 0, 1, 0, counterparty, account, amount, 0, NULL, NULL, NULL FROM movements WHERE kind = 'lend'
  UNION ALL
  SELECT id, 0, 0, 1, counterparty, account, NULL, amount, NULL, NULL, NULL FROM movements WHERE kind = 'return'
) AS told
GROUP BY id
HAVING SUM(written) <> 1 OR SUM(drew) <> 1 OR SUM(gave) > 1 OR MAX(misfit) <> 0
  OR MIN(parent) <> MAX(parent) OR MIN(account) <> MAX(account) OR MIN(amount) <> MAX(amount)
  OR SUM(given) <> MAX(rest) AND (MAX(must_give) = 1 OR SUM(gave) > 0)
ORDER BY id LIMIT 20
