-- For this connection the journal is what the tables have and what the log has.
CREATE TEMP VIEW journal AS
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM main.journal
UNION ALL
SELECT 'main', batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM log_journal
