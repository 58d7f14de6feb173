-- All movements: old ones, which are rows of `journal`, and newer ones, which come from the records of groups.
CREATE TEMP VIEW movements AS
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM journal
UNION ALL
SELECT chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at FROM group_movements
