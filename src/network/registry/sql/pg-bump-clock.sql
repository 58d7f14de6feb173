-- Whoever stands still with this row locked (a frozen machine) keeps all gateways waiting: the server ends its transaction after a while.
UPDATE registry_clock SET version = version + 1 RETURNING set_config('idle_in_transaction_session_timeout', '3000', true)
