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
