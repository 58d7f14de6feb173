import type { CapField } from '#config';
import { foldName } from '#wire';
import type { Offer } from '#catalog';
import { type ChatBody, REASONING_IF_LISTED } from '../chat-schema.ts';
import { withUsualTimes } from '../price/cache-times.ts';
import { withLists } from './content-lists.ts';
import { listed, OUTPUT_FIELDS, paidBy, RAISING, SERVICE_TIERS } from '../price/paid-extras.ts';
import { prices, takesTier } from '../price/priced-parts.ts';

interface ForwardedBody {
  readonly body: Record<string, unknown>;
  /**
   * Names of the fields that the consumer sent and `offer` does not get, as the consumer wrote them. The path to a
   * nested field has dots.
   */
  readonly dropped: readonly string[];
}

export interface ForwardedCap {
  /** No field may ask for more tokens than this. */
  readonly tokens: number;
  /** The field that carries the cap; null if no cap is sent. */
  readonly field: CapField | null;
}

/**
 * The body for `offer`. It has the published fields, and the further fields that the model lists (`params.forward`);
 * the operator's own models get all. No field asks for more output than the cap, which is at most what the lock was
 * computed with. `refused`: those of `reasoning` and `STREAM_USAGE` that the offer has refused.
 */
export function forwardedBody(
  chatBody: ChatBody,
  offer: Offer,
  { tokens: completionCap, field: capField }: ForwardedCap,
  refused: readonly string[] = [],
): ForwardedBody {
  const body: Record<string, unknown> = {};
  const dropped: string[] = [];
  // An hour in a cache costs more than the five minutes that have a price.
  const requestBody =
    prices(offer, 'input_cache_write_1h') || listed(offer, 'cache_control.ttl') ? chatBody : withUsualTimes(chatBody);
  if (requestBody !== chatBody) dropped.push('cache_control.ttl');
  for (const field of Object.keys(requestBody)) {
    if (FOR_THE_GATEWAY.has(field) || BY_A_RULE.has(field)) continue;
    const value = requestBody[field];
    if (field === 'messages') body[field] = withLists(requestBody.messages, offer.service);
    else if (PUBLISHED.has(field) && takes(offer, field)) body[field] = value;
    else if (value !== null) {
      const sent = other(offer, field, value, completionCap, dropped);
      if (sent !== undefined) body[field] = sent;
    }
  }
  addReasoning(body, dropped, requestBody, { offer, cap: completionCap, refused: refused.includes('reasoning') });
  if (requestBody.stream === true) {
    // Without usage, only what came can be billed.
    if (!refused.includes(STREAM_USAGE))
      body['stream_options'] = { ...requestBody.stream_options, include_usage: true };
    else if (!asksUsageAlone(requestBody)) dropped.push('stream_options');
  }
  body['model'] = offer.model!.upstreamModel;
  if (capField !== null) body[capField] = completionCap;
  return { body, dropped };
}

/** The option of streams that the gateway adds. */
export const STREAM_USAGE = 'stream_options.include_usage';

/** Whether the client set no other option of streams, so that a refusal of them is about the gateway's own. */
export const asksUsageAlone = ({ stream_options: options }: ChatBody): boolean =>
  Object.keys(options ?? {}).every((name) => name === 'include_usage');

/** Adds the fields that say how much a model reasons. None of their bounds is above the cap. */
function addReasoning(
  body: Record<string, unknown>,
  dropped: string[],
  requestBody: ChatBody,
  { offer, cap, refused }: { readonly offer: Offer; readonly cap: number; readonly refused: boolean },
): void {
  const { reasoning, reasoning_effort: effort, thinking, thinking_budget: budget } = requestBody;
  if (effort !== undefined) body['reasoning_effort'] = effort;
  if (thinking !== undefined) addExtension(body, dropped, offer, 'thinking', boundedReasoning(thinking, cap));
  if (budget !== undefined) addExtension(body, dropped, offer, 'thinking_budget', atMost(budget, cap));
  if (reasoning === undefined || reasoning === null) return;
  // A request of another API may be translated for a model of which nothing is listed. There the field would be refused
  // by services that know only the published ones, although the client never sent it.
  const writtenAs = requestBody[REASONING_IF_LISTED];
  const isTaken = writtenAs !== undefined ? lists(offer, 'reasoning') : goes(offer, 'reasoning', 'reasoning');
  if (isTaken && !refused && !refusesReasoning(offer)) body['reasoning'] = boundedReasoning(reasoning, cap);
  else if (writtenAs !== undefined) dropped.push(...writtenAs);
  else {
    const translated = reasoningEffort(requestBody);
    Object.assign(body, translated.fields);
    dropped.push(...translated.dropped);
  }
}

/**
 * An unpublished field in the form that `offer` gets. If the offer does not get it, the result is undefined and
 * `dropped` gets its name.
 */
function other(offer: Offer, field: string, value: unknown, cap: number, dropped: string[]): unknown {
  const name = foldName(field);
  // A server written in C reads a name only up to U+0000, so it could see another name.
  const sent =
    !field.includes('\0') && (isPaid(offer, field, value) || goes(offer, field, name))
      ? boundedField(field, value, { offer, cap, dropped })
      : undefined;
  if (sent === undefined) dropped.push(field);
  return sent;
}

/**
 * An unpublished field with its bounds lowered to the cap, at any depth; undefined if the offer may not get it.
 * `dropped` gets the paths of the members that it does not get.
 */
export function boundedField(
  field: string,
  value: unknown,
  { offer, ...bounds }: Omit<Bounds, 'known' | 'isListed'>,
): unknown {
  const name = foldName(field);
  const isListed = listed(offer, field);
  // The members of a field that has a price belong to it, such as the place of a search.
  const known = isListed || paidBy(name) !== undefined;
  return bounded(field, name, value, { offer, ...bounds, known, isListed }, isListed);
}

export const isPaidTier = (offer: Offer, field: string, value: unknown): boolean =>
  field === 'service_tier' && takesTier(offer, value);

const isPaid = (offer: Offer, field: string, value: unknown): boolean =>
  isPaidTier(offer, field, value) || (field === 'web_search_options' && prices(offer, 'web_search'));

function goes(offer: Offer, field: string, name: string): boolean {
  if (FOR_ANOTHER_ROUTER.has(field)) return false;
  if (listed(offer, field)) return true;
  const meter = paidBy(name);
  if (meter === null || (meter !== undefined && !prices(offer, meter))) return false;
  // The operator chose the services in its own file, so they get all fields by default. A provider that dials in
  // lists the fields that it takes.
  const own = offer.endpoint.kind === 'direct';
  const all = (offer.model!.forward ?? (own ? 'all' : null)) === 'all';
  return all && takes(offer, field) && !REDIRECTING.has(name) && (own || !COSTLY_TO_STRANGERS.has(name));
}

const lists = (offer: Offer, field: string): boolean => offer.model!.forward === 'all' || listed(offer, field);

function addExtension(
  body: Record<string, unknown>,
  dropped: string[],
  offer: Offer,
  field: string,
  value: unknown,
): void {
  if (takes(offer, field)) body[field] = value;
  else if (value !== null) dropped.push(field);
}

/** Whether an offer gets a field of `PUBLISHED` or a rule. A strict one gets only the extensions that it lists. */
const takes = (offer: Offer, field: string): boolean =>
  offer.model!.strictFields !== true || !EXTENSIONS.has(field) || listed(offer, field);

interface Bounds {
  readonly offer: Offer;
  readonly cap: number;
  readonly dropped: string[];
  /** The model lists the outermost field, or has a price for it. */
  readonly known: boolean;
  readonly isListed: boolean;
}

/**
 * The field with its bounds lowered to the cap; undefined if the field may not be sent. A model that lists its own
 * name of the cap gets the cap under that name.
 */
function bounded(path: string, name: string, value: unknown, bounds: Bounds, isListed = false): unknown {
  const { cap } = bounds;
  if (CAPS.has(name)) return isListed ? cap : undefined;
  if (MORE_COMPLETIONS.has(name)) return undefined;
  if (MINIMA.has(name) || REASONING_BOUNDS.has(name)) return atMost(value, cap);
  if (Array.isArray(value)) return elements(path, value, bounds);
  return typeof value === 'object' && value !== null ? inside(path, value as Record<string, unknown>, bounds) : value;
}

function elements(path: string, value: readonly unknown[], bounds: Bounds): readonly unknown[] {
  const keptElements = value.map((element, index) =>
    typeof element === 'object' && element !== null ? bounded(`${path}[${index}]`, '', element, bounds) : element,
  );
  return keptElements.some((element, index) => element !== value[index]) ? keptElements : value;
}

/**
 * Returns the same object if nothing in it changes, because numbers that a double cannot hold are objects here, too.
 */
function inside(path: string, value: Record<string, unknown>, bounds: Bounds): Record<string, unknown> {
  const { dropped } = bounds;
  const entries: [string, unknown][] = [];
  let changed = false;
  for (const [key, member] of Object.entries(value)) {
    const before = dropped.length;
    const sent = mayStand(key, member, bounds) ? bounded(`${path}.${key}`, foldName(key), member, bounds) : undefined;
    if (sent === undefined) dropped.push(`${path}.${key}`);
    else entries.push([key, sent]);
    changed ||= sent !== member || dropped.length > before;
  }
  return changed ? Object.fromEntries(entries) : value;
}

/** The value of a field of `RAISING` at which a search costs what vendors list. */
const LEAST = 'low';

/**
 * Whether a member of an object inside a field may be forwarded. If the model lists the field, its members are
 * known. `n` is never forwarded, because further completions are not priced. Neither is what costs money of its own and
 * is not listed, because only fields of the request are priced.
 */
function mayStand(key: string, value: unknown, { offer, known, isListed }: Bounds): boolean {
  const name = foldName(key);
  if (key.includes('\0') || name === 'n') return false;
  if (SERVICE_TIERS.has(name)) return listed(offer, key) || listed(offer, 'service_tier');
  if (RAISING.has(name) && value !== LEAST && !isListed) return listed(offer, key);
  if (known || listed(offer, key)) return true;
  return !(REDIRECTING.has(name) || OF_A_REQUEST.has(name) || OUTPUT_FIELDS.has(name) || paidBy(name) !== undefined);
}

/** `reasoning` or `thinking` with its bounds lowered to the cap. Returns the same value if it has none. */
export function boundedReasoning(value: unknown, cap: number): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = value as Record<string, unknown>;
  const asks = Object.keys(members).filter((key) => CAPS.has(foldName(key)) || REASONING_BOUNDS.has(foldName(key)));
  return asks.length === 0
    ? value
    : { ...members, ...Object.fromEntries(asks.map((key) => [key, atMost(members[key], cap)])) };
}

/**
 * A value that is not a number becomes the cap. Some servers parse strings as numbers, even strings that this
 * gateway would not.
 */
function atMost(value: unknown, cap: number): unknown {
  if (value === null || value === undefined) return value;
  return typeof value === 'number' ? Math.min(value, cap) : cap;
}

/** `reasoning`, translated for a provider that does not list this field. */
interface ReasoningEffort {
  readonly fields: { readonly reasoning_effort?: unknown };
  /** Names of the members that such a provider does not get. */
  readonly dropped: readonly string[];
}

/**
 * Translates another router's `reasoning: {effort}` to `reasoning_effort` of the published chat API. That API has no
 * fields for the other members of `reasoning`.
 */
function reasoningEffort({ reasoning, reasoning_effort: own }: ChatBody): ReasoningEffort {
  if (reasoning === undefined || reasoning === null) return { fields: {}, dropped: [] };
  if (typeof reasoning !== 'object' || Array.isArray(reasoning)) return { fields: {}, dropped: ['reasoning'] };
  const { effort, ...rest } = reasoning as Readonly<Record<string, unknown>>;
  const isTaken = typeof effort === 'string' && (own === undefined || own === null || own === effort);
  const others = effort === undefined || isTaken ? Object.keys(rest) : ['effort', ...Object.keys(rest)];
  return { fields: isTaken ? { reasoning_effort: effort } : {}, dropped: others.map((name) => `reasoning.${name}`) };
}

/** Offers that refused `reasoning`. A new registration makes a new Offer object, so the gateway learns again. */
const refusers = new WeakSet<Offer>();

const refusesReasoning = (offer: Offer): boolean => refusers.has(offer);

/**
 * Whether an answer refuses the field `reasoning`, as services do that take only the published fields. If the answer
 * names it as the wrong parameter, later calls send no `reasoning` to the offer. A mere text counts for one call,
 * because it may repeat words of the consumer.
 */
export function readReasoningRefusal(offer: Offer, status: number, answer: Uint8Array): boolean {
  if (status !== 400 && status !== 422) return false;
  const text = Buffer.from(answer.subarray(0, ANSWER_BYTES_MAX)).toString('utf8');
  if (/"param"\s*:\s*"reasoning"/.test(text)) refusers.add(offer);
  else if (!/["'`]reasoning["'`]/.test(text.replaceAll('\\"', '"')) || !UNKNOWN.test(text)) return false;
  return true;
}

const ANSWER_BYTES_MAX = 4_096;
const UNKNOWN = /unknown|unrecogni[sz]ed|unsupported|unexpected|forbidden|not (?:permitted|supported|allowed)/i;

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/).filter((word) => word !== ''));

/**
 * Fields for the gateway, which are not forwarded. `usage` asks for the usage, which every reply has anyway.
 * `__proto__` is listed because copying it would set a prototype.
 */
export const FOR_THE_GATEWAY = words(
  `provider models continue session_id metadata tollgate max_cost max_tool_rounds usage __proto__`,
);

/** Fields for another router. A provider would misread them, or they would cost it money. */
export const FOR_ANOTHER_ROUTER = words(`plugins transforms route trace preset include_reasoning`);

/** Fields that `forwardedBody` has a rule for. */
const BY_A_RULE = words(
  `max_tokens max_completion_tokens stream_options reasoning reasoning_effort thinking thinking_budget`,
);

/**
 * Fields that common servers of the chat API take besides the published ones. Models with `params.strict_fields` get
 * only those that they list.
 */
const EXTENSIONS = words(`
  thinking thinking_budget reasoning_format enable_thinking separate_reasoning
  top_k top_a min_p typical_p tfs_z repetition_penalty repeat_penalty repeat_last_n no_repeat_ngram_size
  mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent xtc_probability xtc_threshold
  dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers
  bad_words stop_token_ids include_stop_str_in_output skip_special_tokens spaces_between_special_tokens
  random_seed safe_prompt
  guided_json guided_regex guided_choice guided_grammar structured_outputs grammar json_schema regex ebnf structural_tag
`);

/** Fields that models get unchanged: those of the published chat API, and the extensions. */
export const PUBLISHED: ReadonlySet<string> = new Set([
  ...words(`
  model messages stream n
  audio frequency_penalty function_call functions logit_bias logprobs modalities parallel_tool_calls presence_penalty
  prompt_cache_key prompt_cache_retention response_format safety_identifier seed stop store temperature
  tool_choice tools top_logprobs top_p user verbosity
`),
  ...[...EXTENSIONS].filter((field) => !BY_A_RULE.has(field)),
]);

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
const OF_A_REQUEST = words(`n model models messages prompt input stream streamoptions tools functions`);

/** Folded names of the minimum output. On some servers the minimum overrides the cap. */
const MINIMA = words(`mintokens minnewtokens minlength minoutputtokens mincompletiontokens mingenlen minpredict`);

/** Folded names of the bound on reasoning. Some servers count reasoning in addition to the cap. */
const REASONING_BOUNDS = words(`
  budgettokens thinkingbudget thinkingbudgettokens thinkingtokens maxthinkingtokens reasoningbudget reasoningtokens
  maxreasoningtokens reasoningmaxtokens
`);

/**
 * Folded names of fields that cost memory or time. The operator's own models get them by default, and a provider that
 * dials in lists them: its `"all"` does not name them.
 */
export const COSTLY_TO_STRANGERS = words(`
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
