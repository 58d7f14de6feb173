CREATE INDEX temp.told_key ON told (id, kind)
