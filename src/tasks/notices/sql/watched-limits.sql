-- Budgets of accounts and members with notices, with what was spent of each in the periods $1 to $3.
SELECT l.account, l.subject, l.rules, l.daily_since, l.weekly_since, l.monthly_since, l.ever_since, d.spent AS daily, w.spent AS weekly, m.spent AS monthly, a.spent AS ever,
  COALESCE(l.since, (SELECT applied_at FROM migrations WHERE name = '0035_who-set-a-limit')) AS since
FROM account_limits AS l
LEFT JOIN budgets AS d ON d.id = l.name || ':' || $1
LEFT JOIN budgets AS w ON w.id = l.name || ':' || $2
LEFT JOIN budgets AS m ON m.id = l.name || ':' || $3
LEFT JOIN budgets AS a ON a.id = l.name || ':all'
WHERE l.notifies = 1 AND (l.account, l.subject) > ($4, $5)
ORDER BY l.account, l.subject LIMIT $6
