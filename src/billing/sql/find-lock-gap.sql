-- The nearest used ids before and after an unused id.
SELECT (SELECT MAX(id) FROM locks WHERE id < $1) AS after, (SELECT MIN(id) FROM locks WHERE id > $1) AS before
