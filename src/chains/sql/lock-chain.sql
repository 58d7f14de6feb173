-- Only one transaction at a time has it: what the next statement of the transaction reads is what the one before has left.
UPDATE chains SET height = height WHERE network = (SELECT network FROM deposits WHERE deposits.id = $1) RETURNING network
