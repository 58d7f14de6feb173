SELECT id FROM blobs WHERE id = $1
