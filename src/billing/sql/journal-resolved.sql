-- The locks that these old batches resolve. Their movements are rows of `journal`.
SELECT batch, id FROM journal
WHERE chain = $1 AND batch > $2 AND batch <= $3 AND kind IN ('settle', 'release', 'expire')
ORDER BY batch, position
