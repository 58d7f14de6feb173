-- A process that freezes while it has the lock of this row blocks all gateways, so the server ends its transaction
-- after 3 s.
UPDATE registry_clock SET version = version + 1 RETURNING set_config('idle_in_transaction_session_timeout', '3000', true)
