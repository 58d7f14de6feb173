-- Bytes of one account and of all accounts, of each of them the part of free services, and the bytes of all files that
-- are not complete yet. A file that is being written, or that has reserved room, counts with what is reserved for it. $2:
-- the largest file that is kept, for rows of earlier versions.
SELECT CAST(COALESCE(SUM(CASE WHEN account = $1 THEN size ELSE 0 END), 0) AS BIGINT) AS own, CAST(COALESCE(SUM(size), 0) AS BIGINT) AS total,
  CAST(COALESCE(SUM(CASE WHEN account = $1 AND free = 1 THEN size ELSE 0 END), 0) AS BIGINT) AS own_free,
  CAST(COALESCE(SUM(CASE WHEN free = 1 THEN size ELSE 0 END), 0) AS BIGINT) AS total_free,
  CAST(COALESCE(SUM(CASE WHEN here = 0 THEN size ELSE 0 END), 0) AS BIGINT) AS coming
FROM (
  SELECT account, free, CASE WHEN state = 'writing' AND COALESCE(reserved, $2) > bytes THEN COALESCE(reserved, $2) ELSE bytes END AS size, CASE WHEN state = 'writing' THEN 0 ELSE 1 END AS here FROM blobs
  UNION ALL
  SELECT account, free, COALESCE(bytes, $2) * CASE WHEN files > come THEN files - come ELSE 0 END AS size, 0 AS here
  FROM (SELECT account, free, bytes, files, (SELECT count(*) FROM blobs WHERE blobs.room = blob_rooms.id) AS come FROM blob_rooms WHERE expires_at > $3) AS rooms
) AS files
