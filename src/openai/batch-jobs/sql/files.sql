-- name: addPart
INSERT INTO file_parts (file, n, content) VALUES ($1, $2, $3)

-- name: deleteFile
-- Not while a batch reads it.
DELETE FROM files WHERE id = $1 AND account = $2
  AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.input_file = files.id AND batches.ended_at IS NULL)
RETURNING id

-- name: deleteResults
UPDATE batch_lines SET content = NULL WHERE batch = $1 AND state = $2

-- name: dropUnwritten
DELETE FROM files WHERE id = $1 AND state = 'writing'

-- name: expiredResults
SELECT batch, results FROM files WHERE expires_at <= $1 AND batch IS NOT NULL ORDER BY expires_at LIMIT $2

-- name: findFile
SELECT id, account, part, purpose, name, bytes, batch, results, created_at, expires_at
FROM files WHERE id = $1 AND account = $2 AND state = 'stored' AND expires_at > $3

-- name: growFile
UPDATE files SET room = room + $2, expires_at = $3 WHERE id = $1 AND state = 'writing' RETURNING id

-- name: hasMoney
SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM funded_accounts WHERE id = 'escrow:' || CAST($1 AS TEXT))

-- name: listFiles
-- The files of an account after the one that was created at $5 with the id $6, the newest first if $4 is 1.
SELECT id, account, part, purpose, name, bytes, batch, results, created_at, expires_at FROM files
WHERE account = $1 AND state = 'stored' AND expires_at > $2 AND (CAST($3 AS TEXT) IS NULL OR part = $3)
  AND (CAST($7 AS TEXT) IS NULL OR purpose = $7)
  AND (CAST($6 AS TEXT) IS NULL
    OR ($4 = 1 AND (created_at < $5 OR (created_at = $5 AND id < $6)))
    OR ($4 = 0 AND (created_at > $5 OR (created_at = $5 AND id > $6))))
ORDER BY CASE WHEN $4 = 1 THEN -created_at ELSE created_at END, CASE WHEN $4 = 1 THEN '' ELSE id END, id DESC
LIMIT $8

-- name: partsAfter
SELECT n, content FROM file_parts WHERE file = $1 AND n > $2 ORDER BY n LIMIT $3

-- name: partSizesAfter
SELECT LENGTH(content) AS size FROM file_parts WHERE file = $1 AND n > $2 ORDER BY n LIMIT $3

-- name: putFile
INSERT INTO files (id, account, part, purpose, name, bytes, room, state, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, 0, $6, 'writing', $7, $8)

-- name: resultSizesAfter
SELECT LENGTH(content) AS size FROM batch_lines WHERE batch = $1 AND state = $2 AND n > $3 AND content IS NOT NULL ORDER BY n LIMIT $4

-- name: resultsAfter
SELECT n, content FROM batch_lines WHERE batch = $1 AND state = $2 AND n > $3 AND content IS NOT NULL ORDER BY n LIMIT $4

-- name: roomOfFiles
-- What the files of account $1, of its part $2, of all accounts, and of those without money take, and the number of the
-- first and of the second. The rows of batches count, with their metadata and errors. An account without money is none of `funded_accounts`.
SELECT CAST(COALESCE(SUM(CASE WHEN account = $1 THEN room ELSE 0 END), 0) AS BIGINT) AS own,
  CAST(COALESCE(SUM(CASE WHEN account = $1 AND part = COALESCE(CAST($2 AS TEXT), '') THEN room ELSE 0 END), 0) AS BIGINT) AS part,
  CAST(COALESCE(SUM(room), 0) AS BIGINT) AS total,
  CAST(COALESCE(SUM(CASE WHEN EXISTS (SELECT 1 FROM funded_accounts WHERE funded_accounts.id = 'escrow:' || kept.account) THEN 0 ELSE room END), 0) AS BIGINT) AS free,
  CAST(COALESCE(SUM(CASE WHEN account = $1 THEN is_file ELSE 0 END), 0) AS BIGINT) AS files,
  CAST(COALESCE(SUM(CASE WHEN account = $1 AND part = COALESCE(CAST($2 AS TEXT), '') THEN is_file ELSE 0 END), 0) AS BIGINT) AS part_files
FROM (
  SELECT account, COALESCE(part, '') AS part, room, 1 AS is_file FROM files
  UNION ALL SELECT account, COALESCE(part, ''), 512 + COALESCE(LENGTH(metadata), 0) + COALESCE(LENGTH(errors), 0), 0 FROM batches
) AS kept

-- name: storeFile
UPDATE files SET state = 'stored', bytes = $2, expires_at = $3 WHERE id = $1 AND state = 'writing' RETURNING id

-- name: sweepFiles
-- A file stays while a batch reads it.
DELETE FROM files WHERE id IN (
  SELECT id FROM files WHERE expires_at <= $1
    AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.input_file = files.id AND batches.ended_at IS NULL)
  ORDER BY expires_at LIMIT $2
) RETURNING id
