-- A lock for all chains: only one transaction at a time holds it, so the next statement of the transaction reads the
-- committed result of the one before.
UPDATE chains SET height = height WHERE network = (SELECT MIN(first.network) FROM chains AS first) RETURNING network
