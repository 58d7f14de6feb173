INSERT INTO carried_sums (budget, edge, settled, spent, running, as_of, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (budget) DO UPDATE SET
  edge = excluded.edge, settled = excluded.settled, spent = excluded.spent, running = excluded.running, as_of = excluded.as_of
WHERE carried_sums.as_of < excluded.as_of
