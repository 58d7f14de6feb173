-- The movements that are stored in the records of groups, one row each.
CREATE TEMP TABLE group_movements (
  chain TEXT, batch BIGINT, position BIGINT, kind TEXT, id TEXT, account TEXT, counterparty TEXT,
  amount BIGINT, charged BIGINT, fee BIGINT, drawn BIGINT, price TEXT, at BIGINT
)
