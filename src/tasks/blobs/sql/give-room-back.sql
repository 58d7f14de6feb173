DELETE FROM blob_rooms WHERE id = $1
