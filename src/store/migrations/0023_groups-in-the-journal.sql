-- The movements of a group, as one JSON array with an array for each: what the hash of the group is computed over. NULL where they are rows of the table
-- journal, as they were before; the embedded database has them in its log.
ALTER TABLE journal_batches ADD COLUMN movements TEXT;
-- An audit makes it, over the movements of both.
DROP VIEW entries;
