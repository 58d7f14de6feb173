-- Bytes that are reserved for each file of a room. NULL in rooms of earlier versions: the largest file that is kept.
ALTER TABLE blob_rooms ADD COLUMN bytes BIGINT;
-- 1 for files of a service that is free, or nearly free. They share a small part of all room.
ALTER TABLE blob_rooms ADD COLUMN free BIGINT NOT NULL DEFAULT 0;
-- Bytes that are reserved for a file while it is written. NULL in rows of earlier versions, as above.
ALTER TABLE blobs ADD COLUMN reserved BIGINT;
-- As in blob_rooms.
ALTER TABLE blobs ADD COLUMN free BIGINT NOT NULL DEFAULT 0;
