-- JSON object: the tags of a batch, which each of its lines has, by name. NULL: none.
ALTER TABLE batches ADD COLUMN tags TEXT;
