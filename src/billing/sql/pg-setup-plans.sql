-- The session's statements access rows by key only. A generic plan that was made while the tables were small must not
-- scan the tables after they have grown.
SELECT set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
  set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false)
