-- Accounts of the ledger that have 0.10 USD, or received or gave as much at once. With less, an account counts as one
-- without money: what costs a millionth of a dollar bounds nobody.
CREATE INDEX transfers_funding ON transfers (to_account) WHERE amount >= 100000;
CREATE INDEX transfers_funded ON transfers (from_account) WHERE amount >= 100000;
CREATE VIEW funded_accounts AS
SELECT id FROM accounts WHERE available + locked >= 100000
UNION ALL SELECT to_account FROM transfers WHERE amount >= 100000
UNION ALL SELECT from_account FROM transfers WHERE amount >= 100000;
