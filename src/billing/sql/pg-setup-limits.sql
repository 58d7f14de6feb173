-- A gateway that disappears inside a transaction must not block accounts for the other gateways.
SELECT set_config('idle_in_transaction_session_timeout', '10s', false), set_config('lock_timeout', '2500ms', false)
