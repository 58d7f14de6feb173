-- name: claimBlob
-- Claims a source. If its file is stored, or another call is writing it, the row stays and no row is returned. $9: bytes
-- to reserve for a file without a room of its own.
INSERT INTO blobs (id, source, account, state, bytes, type, sha256, crc32, notes, holder, lease_until, created_at, expires_at, room, reserved, free)
VALUES ($1, $2, $3, 'writing', 0, '', '', 0, '{}', $4, $5, $6, $7, $8,
  COALESCE((SELECT bytes FROM blob_rooms WHERE blob_rooms.id = $8), $9), COALESCE((SELECT free FROM blob_rooms WHERE blob_rooms.id = $8), 0))
ON CONFLICT (source) DO UPDATE SET id = excluded.id, account = excluded.account, state = 'writing', bytes = 0, type = '', sha256 = '', crc32 = 0, notes = '{}',
  holder = excluded.holder, lease_until = excluded.lease_until, created_at = excluded.created_at, expires_at = excluded.expires_at, room = excluded.room,
  reserved = excluded.reserved, free = excluded.free
WHERE (blobs.state = 'writing' AND blobs.lease_until <= excluded.created_at) OR blobs.expires_at <= excluded.created_at
RETURNING id, reserved, free

-- name: countBlobBytes
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

-- name: dropBlob
DELETE FROM blobs WHERE id = $1 RETURNING id

-- name: dropExpiredBlobs
-- Removes expired rows without a complete file, and, an hour later, rows of other stores, which may not exist any more.
-- $2: the stores whose files this gateway removes, see listParam.
DELETE FROM blobs WHERE id IN (
  SELECT id FROM blobs WHERE expires_at <= $1 AND CASE WHEN holder IN (SELECT value ->> 0 FROM json_each($2)) THEN state = 'writing' ELSE expires_at <= $3 END
  ORDER BY expires_at LIMIT $4
)
RETURNING id

-- name: expireBlob
UPDATE blobs SET expires_at = $2 WHERE id = $1 AND expires_at > $2 RETURNING id

-- name: expiredBlobs
-- Expired files that are complete. Each row is removed after its file.
SELECT id FROM blobs WHERE expires_at <= $1 AND holder = $2 AND state = 'stored' ORDER BY expires_at LIMIT $3

-- name: expiredRooms
DELETE FROM blob_rooms WHERE id IN (SELECT id FROM blob_rooms WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2) RETURNING id

-- name: findBlobHolder
SELECT url FROM blob_holders WHERE id = $1

-- name: findBlob
SELECT id FROM blobs WHERE id = $1

-- name: findBlobs
-- $1: sources, see listParam.
SELECT id, source, account, state, bytes, type, sha256, crc32, notes, holder, lease_until, created_at, expires_at FROM blobs
WHERE expires_at > $2 AND source IN (SELECT value ->> 0 FROM json_each($1))

-- name: giveRoomBack
DELETE FROM blob_rooms WHERE id = $1

-- name: postponeBlob
-- Moves a file behind all files that are expired by now.
UPDATE blobs SET expires_at = $2 WHERE id = $1 AND state = 'stored' AND expires_at <= $2 RETURNING id

-- name: putBlobHolder
INSERT INTO blob_holders (id, url) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET url = excluded.url

-- name: renewBlob
UPDATE blobs SET lease_until = $2, bytes = $3 WHERE id = $1 AND state = 'writing' RETURNING id

-- name: reserveForBlob
UPDATE blobs SET reserved = $2 WHERE id = $1 AND state = 'writing' RETURNING id

-- name: storeBlob
UPDATE blobs SET state = 'stored', bytes = $2, type = $3, sha256 = $4, crc32 = $5, notes = $6, expires_at = $7 WHERE id = $1 AND state = 'writing'
RETURNING id, source, account, state, bytes, type, sha256, crc32, notes, holder, lease_until, created_at, expires_at

-- name: takeRoom
INSERT INTO blob_rooms (id, account, files, expires_at, bytes, free) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
