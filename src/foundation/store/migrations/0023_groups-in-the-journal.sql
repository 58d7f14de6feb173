-- The movements of a group, as a JSON array with one array per movement. The hash of the group is computed over this
-- text. NULL for older groups, whose movements are rows of the table journal. The embedded database stores movements in
-- its log.
ALTER TABLE journal_batches ADD COLUMN movements TEXT;
-- The audit now creates this view, over both kinds of movements.
DROP VIEW entries;
