-- Locks the row, so that transactions that count run one after the other.
UPDATE analytics_state SET accounts_at = accounts_at WHERE id = 1
