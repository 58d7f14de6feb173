-- Two changes of one account's members wait for each other, so that each sees how many owners there are.
UPDATE members SET name = name WHERE account = $1
