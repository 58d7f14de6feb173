-- The locks that these batches resolve, where movements have rows of their own.
SELECT batch, id FROM journal
WHERE chain = $1 AND batch > $2 AND batch <= $3 AND kind IN ('settle', 'release', 'expire')
ORDER BY batch, position
