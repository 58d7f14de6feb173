-- Versions from before 2026-11-20 ignore migrations that they do not know, and would write books that this version
-- cannot follow. They take this migration for missing, try to create its tables again, and so cannot start. Versions
-- since then refuse this database by themselves. See RENAMED in migrations.ts.
UPDATE migrations SET name = '0001_ledger (renamed)' WHERE name = '0001_ledger';
UPDATE migrated_by SET name = '0001_ledger (renamed)' WHERE name = '0001_ledger';
