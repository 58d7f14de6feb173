-- Reserved room for future files. It is taken before the work for the files begins.
CREATE TABLE blob_rooms (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  files BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX blob_rooms_expire ON blob_rooms (expires_at);
-- The room that a file was written into; NULL for none.
ALTER TABLE blobs ADD COLUMN room TEXT;
CREATE INDEX blobs_of_room ON blobs (room);
