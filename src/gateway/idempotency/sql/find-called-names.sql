-- The details of a call and of the calls that were made under it.
SELECT id, lock_detail FROM locks WHERE id = $1 OR parent = $1
