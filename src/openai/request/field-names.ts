const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/).filter((word) => word !== ''));

/**
 * Fields for the gateway, which are not forwarded. `usage` asks for the usage, which every reply has anyway.
 * `__proto__` is listed because copying it would set a prototype.
 */
export const FOR_THE_GATEWAY = words(
  `provider models session_id metadata tollgate max_cost max_tool_rounds usage __proto__`,
);

/** Fields for another router. A provider would misread them, or they would cost it money. */
export const FOR_ANOTHER_ROUTER = words(`plugins transforms route trace preset include_reasoning`);

/** Fields that `forwardedBody` has a rule for. */
export const BY_A_RULE = words(
  `max_tokens max_completion_tokens stream_options reasoning reasoning_effort thinking thinking_budget`,
);

/**
 * Fields that every model gets unchanged: those of the published chat API, and the sampling extensions that common
 * servers of this API share.
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
 * Folded names (`foldName`) that servers use for the cap of a completion. On some servers `max_length` also counts
 * the prompt.
 */
export const CAPS = words(`
  maxtokens maxcompletiontokens maxoutputtokens maxnewtokens maxnewtoken npredict numpredict maxlength maxlen
  maxgenlen maxgenlength maxgenerationlength maxgentokens maxgeneratedtokens maxgenerationtokens
  maxtokenstosample maxtokenstogenerate tokenstogenerate maxresponsetokens maxresponselength maxanswertokens
  maxdecodetokens maxdecodingtokens maxpredict maxpredictedtokens maxtotaltokens maxoutputlength maxoutputlen
  maxtoken maxtargetlength maxtargettokens maxtokenspercompletion maxtokensperrequest
  outputlength outputlen outputtokens requestoutputlen numtokens ntokens genamt maxcompletionlength maxcompletion
`);

/** Folded names of fields that make a server produce more completions than `n` says. Only `n` is priced. */
export const MORE_COMPLETIONS = words(`
  bestof usebeamsearch numbeams beamwidth beamsize numreturnsequences numcompletions ncompletions ncmpl nchoices
  candidatecount numcandidates numgenerations numsamples samplecount
`);

/**
 * Folded names of request fields. Some servers take an object inside a field for a separate request. There these
 * names could change what was priced.
 */
export const OF_A_REQUEST = words(`n model models messages prompt input stream streamoptions tools functions`);

/** Folded names of the minimum output. On some servers the minimum overrides the cap. */
export const MINIMA = words(
  `mintokens minnewtokens minlength minoutputtokens mincompletiontokens mingenlen minpredict`,
);

/** Folded names of the bound on reasoning. Some servers count reasoning in addition to the cap. */
export const REASONING_BOUNDS = words(`
  budgettokens thinkingbudget thinkingbudgettokens thinkingtokens maxthinkingtokens reasoningbudget reasoningtokens
  maxreasoningtokens reasoningmaxtokens
`);

/**
 * Folded names of fields that cost money in addition to tokens, or that give a call a priority. `forward = "all"`
 * does not send them to models of a provider that dials in. A native request sends them only to a model that lists
 * them.
 */
export const COSTLY = words(`
  servicetier priority speed inferencegeo prediction background deferred betas anthropicbeta
  websearchoptions websearch searchparameters searchoptions enablesearch forcedsearch searchcontextsize
  lora loras lorarequest loraadapter loraname loraid adapterid adaptersource promptlogprobs echo
`);

/**
 * Folded names of fields that send a call elsewhere, use other keys, or run code that the consumer wrote. `forward =
 * "all"` sends them to no model.
 */
export const REDIRECTING = words(`
  apibase baseurl apikey apiversion apitype organization deploymentid customllmprovider modellist userconfig fallbacks
  contextwindowfallbacks mockresponse mocktoolcalls mocktimeout mockdelay extraheaders headers extraquery
  extrabody logitsprocessors customlogitprocessor kvtransferparams chattemplate litellmparams litellmmetadata proxyserverrequest
  awsaccesskeyid awssecretaccesskey awssessiontoken awsregionname vertexcredentials vertexproject
`);
