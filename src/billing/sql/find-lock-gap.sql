-- The ids next to one that no lock has.
SELECT (SELECT MAX(id) FROM locks WHERE id < $1) AS after, (SELECT MIN(id) FROM locks WHERE id > $1) AS before
