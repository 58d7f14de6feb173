-- A lock for all chains. Only one transaction at a time holds it, so its next statement reads the committed result of
-- the transaction that held the lock before.
UPDATE chains SET height = height WHERE network = (SELECT MIN(first.network) FROM chains AS first) RETURNING network
