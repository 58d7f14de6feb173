-- What was acknowledged survives a power cut, whatever the server's default.
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
