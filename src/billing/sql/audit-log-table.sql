CREATE TEMP TABLE log_journal (
  batch BIGINT, position BIGINT, kind TEXT, id TEXT, account TEXT, counterparty TEXT,
  amount BIGINT, charged BIGINT, fee BIGINT, drawn BIGINT, price TEXT, at BIGINT
)
