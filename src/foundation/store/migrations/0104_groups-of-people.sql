-- `known_groups`: JSON list of the groups with a rule that the provider last said. `groups_from`: where they stood,
-- `token` or `userinfo`. NULL: it has said nothing since this column is there.
ALTER TABLE people ADD COLUMN known_groups TEXT;
ALTER TABLE people ADD COLUMN groups_from TEXT;
