-- Concurrent changes of one account's members wait for each other, so that each sees the current number of owners.
UPDATE members SET name = name WHERE account = $1
