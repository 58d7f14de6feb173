-- What a call is of, and the calls that were made under it.
SELECT id, lock_detail FROM locks WHERE id = $1 OR parent = $1
