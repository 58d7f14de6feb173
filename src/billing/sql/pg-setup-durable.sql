-- An acknowledged commit must survive a power cut, whatever the server's default is.
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
