const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/).filter((word) => word !== ''));

/**
 * Fields that speak to the gateway, which does what they ask. `usage` asks for the usage that every reply has.
 * `__proto__` would be copied as a prototype.
 */
export const FOR_THE_GATEWAY = words(
  `provider models session_id metadata tollgate max_cost max_tool_rounds usage __proto__`,
);

/** Fields that speak to another router, and that a provider would misread or pay for. */
export const FOR_ANOTHER_ROUTER = words(`plugins transforms route trace preset include_reasoning`);

/** Fields that `forwardedBody` has a rule for. */
export const BY_A_RULE = words(
  `max_tokens max_completion_tokens stream_options reasoning reasoning_effort thinking thinking_budget`,
);

/**
 * Fields that every model gets as they came: those of the published chat API, and the sampling extensions that its
 * usual servers share.
 */
export const PUBLISHED = words(`
  model messages stream n
  audio frequency_penalty function_call functions logit_bias logprobs modalities parallel_tool_calls presence_penalty
  prompt_cache_key prompt_cache_retention response_format safety_identifier seed stop store temperature
  tool_choice tools top_logprobs top_p user verbosity
  reasoning_format enable_thinking separate_reasoning
  top_k top_a min_p typical_p tfs_z repetition_penalty repeat_penalty repeat_last_n no_repeat_ngram_size
  mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent xtc_probability xtc_threshold
  dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers
  bad_words stop_token_ids include_stop_str_in_output skip_special_tokens spaces_between_special_tokens
  random_seed safe_prompt
  guided_json guided_regex guided_choice guided_grammar structured_outputs grammar json_schema regex ebnf structural_tag
`);

/**
 * Folded names (`foldName`) of the cap of a completion at servers of every kind. `max_length` counts the prompt too
 * at some, the rest the output alone.
 */
export const CAPS = words(`
  maxtokens maxcompletiontokens maxoutputtokens maxnewtokens maxnewtoken npredict numpredict maxlength maxlen
  maxgenlen maxgenlength maxgenerationlength maxgentokens maxgeneratedtokens maxgenerationtokens
  maxtokenstosample maxtokenstogenerate tokenstogenerate maxresponsetokens maxresponselength maxanswertokens
  maxdecodetokens maxdecodingtokens maxpredict maxpredictedtokens maxtotaltokens maxoutputlength maxoutputlen
  maxtoken maxtargetlength maxtargettokens maxtokenspercompletion maxtokensperrequest
  outputlength outputlen outputtokens requestoutputlen numtokens ntokens genamt maxcompletionlength maxcompletion
`);

/** Folded names of what makes a server work on more completions than `n` says, which alone is priced. */
export const MORE_COMPLETIONS = words(`
  bestof usebeamsearch numbeams beamwidth beamsize numreturnsequences numcompletions ncompletions ncmpl nchoices
  candidatecount numcandidates numgenerations numsamples samplecount
`);

/**
 * Folded names that mean something else than what was priced, where a server takes an object in a field for a
 * request of its own.
 */
export const OF_A_REQUEST = words(`n model models messages prompt input stream streamoptions tools functions`);

/** Folded names of the least output, which some servers put above the cap. */
export const MINIMA = words(
  `mintokens minnewtokens minlength minoutputtokens mincompletiontokens mingenlen minpredict`,
);

/** Folded names of the bound of reasoning, which some servers count beside the cap. */
export const REASONING_BOUNDS = words(`
  budgettokens thinkingbudget thinkingbudgettokens thinkingtokens maxthinkingtokens reasoningbudget reasoningtokens
  maxreasoningtokens reasoningmaxtokens
`);

/**
 * Folded names of fields that cost money beside tokens, or give a call a rank. No model of a provider that dials in
 * gets them by `forward = "all"`. A native request takes them only to a model that lists them.
 */
export const COSTLY = words(`
  servicetier priority speed inferencegeo prediction background deferred betas anthropicbeta
  websearchoptions websearch searchparameters searchoptions enablesearch forcedsearch searchcontextsize
  lora loras lorarequest loraadapter loraname loraid adapterid adaptersource promptlogprobs echo
`);

/**
 * Folded names of what sends a call elsewhere, with other keys, or runs what the consumer wrote. No model gets them
 * by `forward = "all"`.
 */
export const REDIRECTING = words(`
  apibase baseurl apikey apiversion apitype organization deploymentid customllmprovider modellist userconfig fallbacks
  contextwindowfallbacks mockresponse mocktoolcalls mocktimeout mockdelay extraheaders headers extraquery
  extrabody logitsprocessors customlogitprocessor kvtransferparams chattemplate litellmparams litellmmetadata proxyserverrequest
  awsaccesskeyid awssecretaccesskey awssessiontoken awsregionname vertexcredentials vertexproject
`);
