-- `part`: the first part of a service's name, without what people overlook, as `folded` is. `owns`: 1 if nobody else
-- had this part when the provider took it, so that others may offer this name and not a further one with the part.
ALTER TABLE service_names ADD COLUMN part TEXT NOT NULL DEFAULT '';
ALTER TABLE service_names ADD COLUMN owns BIGINT NOT NULL DEFAULT 1;
UPDATE service_names SET folded = replace(folded, 'nn', 'm');
UPDATE service_names SET part =
  substr(folded, 1, length(folded) - length(ltrim(folded, 'abcdefghijklmnopqrstuvwxyz0123456789')));
CREATE INDEX service_names_part ON service_names (part);
