-- All movements: those with rows of their own, of before the records of groups, and those of the records.
CREATE TEMP VIEW movements AS
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal
UNION ALL
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM group_movements
