-- name: putReport
INSERT INTO gateway_reports (id, at, report) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET at = excluded.at, report = excluded.report

-- name: listReports
SELECT id, at, report FROM gateway_reports

-- name: deleteReport
DELETE FROM gateway_reports WHERE id = $1

-- name: deleteOldReports
DELETE FROM gateway_reports WHERE at < $1
