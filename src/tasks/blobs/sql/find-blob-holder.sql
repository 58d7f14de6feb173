SELECT url FROM blob_holders WHERE id = $1
