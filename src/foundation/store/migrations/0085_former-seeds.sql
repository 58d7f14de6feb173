-- Seeds that the identity of this database had before, each encrypted by the present one. So what they have signed and
-- sealed can still be read, and the ids of providers stay.
CREATE TABLE former_seeds (
  -- Id of the key that signed receipts.
  receipt_key TEXT PRIMARY KEY,
  sealed TEXT NOT NULL,
  -- Epoch milliseconds: when it became the seed of the database, and when it was replaced.
  since BIGINT NOT NULL,
  until BIGINT NOT NULL
);
