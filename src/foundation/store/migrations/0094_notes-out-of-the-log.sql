-- The log of changes is for ever, and notes on accounts can be deleted: it keeps none of their texts.
UPDATE admin_log SET body = NULL WHERE method = 'POST' AND path LIKE '/admin/v1/accounts/%/notes';
