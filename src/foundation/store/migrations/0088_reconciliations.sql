-- The last kept comparison with each vendor, for metrics and the operator's console. `result` is JSON.
CREATE TABLE reconciliations (
  vendor TEXT PRIMARY KEY,
  at BIGINT NOT NULL,
  result TEXT NOT NULL
);
