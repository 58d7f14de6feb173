-- Only one transaction at a time has it, of whatever chain: what the next statement of the transaction reads is what the one before has left.
UPDATE chains SET height = height WHERE network = (SELECT MIN(first.network) FROM chains AS first) RETURNING network
