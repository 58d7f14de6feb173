-- Leases: money of a consumer, and room of a budget, on which one gateway decides alone. A lease is a stripe of the
-- account or of the budget, so a balance is still the sum of its row and its stripes. The embedded ledger has none.

-- What the locks hold that were made in the stripe. Such a lock names its stripe, and is resolved there.
ALTER TABLE account_stripes ADD COLUMN locked BIGINT NOT NULL DEFAULT 0 CHECK (locked >= 0);
ALTER TABLE locks ADD COLUMN stripe BIGINT;

-- `leased` of a stripe is what it may count as spent and locked together, and `most` was the limit of the budget when
-- this room was given. `leased` of a budget is that of all its stripes.
CREATE TABLE budget_stripes (
  budget TEXT NOT NULL,
  stripe BIGINT NOT NULL,
  spent BIGINT NOT NULL,
  locked BIGINT NOT NULL,
  leased BIGINT NOT NULL,
  most BIGINT NOT NULL,
  PRIMARY KEY (budget, stripe),
  CONSTRAINT budget_stripes_leased CHECK (spent >= 0 AND locked >= 0 AND spent + locked <= leased)
);
ALTER TABLE budgets ADD COLUMN leased BIGINT NOT NULL DEFAULT 0 CHECK (leased >= 0);

-- What budgets count, with their stripes.
CREATE VIEW budget_sums AS
SELECT id,
  CAST(spent + COALESCE((SELECT SUM(budget_stripes.spent) FROM budget_stripes WHERE budget_stripes.budget = budgets.id), 0) AS BIGINT) AS spent,
  CAST(locked + COALESCE((SELECT SUM(budget_stripes.locked) FROM budget_stripes WHERE budget_stripes.budget = budgets.id), 0) AS BIGINT) AS locked
FROM budgets;
