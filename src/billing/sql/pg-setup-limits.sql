-- A gateway that vanishes inside a transaction must not keep accounts from the others.
SELECT set_config('idle_in_transaction_session_timeout', '10s', false), set_config('lock_timeout', '2500ms', false)
