-- name: putReconciliation
INSERT INTO reconciliations (vendor, at, result) VALUES ($1, $2, $3)
ON CONFLICT (vendor) DO UPDATE SET at = excluded.at, result = excluded.result

-- name: listReconciliations
SELECT vendor, at, result FROM reconciliations ORDER BY at DESC, vendor LIMIT $1
