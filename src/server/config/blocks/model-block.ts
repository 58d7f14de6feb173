import type { MicroUsd, Rates } from '#billing/amounts';
import { IMAGE_TOKENS_OF_OTHERS, IMAGE_TOKENS_OF_OWN, imageTokensMax } from '../image-tokens.ts';
import { TOKENS_MAX } from '../known-providers.ts';
import { CAP_NAMES, type CapName } from '../refused-cap.ts';
import { option, optionalWhole, textList, trueOrFalse, type Option } from '../option.ts';
import { CHAT_MODALITIES, chargedPerCall, KINDS_OF_MODELS } from '../model-kinds.ts';
import { show, WrongValue } from '../problem.ts';
import { NATIVE_APIS, type NativeWireName } from '../native-apis.ts';
import { type ModelWire, REALTIME } from '../upstream-api.ts';
import {
  COMMON_OPTIONS,
  defineBlock,
  firstEventTimeout,
  headTimeout,
  UPSTREAM_MODEL,
  withTimeouts,
  words,
} from './block.ts';
import { declaredOptions, QUANTIZATION, stopsOption } from './declared.ts';
import { apiOrSdkOptions, toApiOrSdkTarget } from './sdk-options.ts';
import { alwaysWritten, field, flagField, optionalField } from './field.ts';
import {
  CHARACTER_PRICE,
  COMPLETION_PRICE,
  INPUT_IMAGE_PRICE,
  MODEL_CALL_PRICE,
  MODEL_PART_PRICES as PARTS,
  optionalMinuteRate,
  optionalRate,
  PROMPT_PRICE,
  rate,
  rates,
} from './price.ts';
import {
  completeServiceTiers,
  completeTiers,
  modelCost,
  priceTiers,
  serviceTiers,
  writeServiceTiers,
  writeTiers,
} from './price-tiers.ts';

const WIRES: readonly ModelWire[] = ['chat', ...(Object.keys(NATIVE_APIS) as NativeWireName[]), REALTIME];
const TITLES = Object.entries(NATIVE_APIS)
  .map(([wire, { title }]) => `\`${wire}\` is ${title}`)
  .join(', ');

const MODALITIES = [...CHAT_MODALITIES, ...KINDS_OF_MODELS.flatMap(([, { outputs }]) => outputs)];
/** The context of a model that does not declare one, for its locks. The listings do not show it. */
const CONTEXT_ASSUMED = 131_072;
/** The most searches of a call that sets no limit, for a model that does not say. */
export const SEARCHES_MAX = 10;
const FIELDS_MAX = 64;
const FIELD = /^[A-Za-z_][\w.:-]{0,63}$/;

/** Prices that may depend on the length of the prompt and on the service tier. */
const TIER_PRICES = { prompt: PROMPT_PRICE, completion: COMPLETION_PRICE, image: INPUT_IMAGE_PRICE, ...PARTS };

const PREFILLS = ['message', 'prefix', 'continue_final_message'] as const;
type Prefill = (typeof PREFILLS)[number];

const offer = {
  ...COMMON_OPTIONS,
  context_length: contextLength(),
  max_output_tokens: outputBound(
    'The same as `params.max_output_tokens`. If both are given, they must be equal.',
    'that of `params.max_output_tokens`',
  ),
  input_modalities: alwaysWritten(
    'model.inputModalities',
    words(MODALITIES, ['text'], 'Kinds of content that a request may contain.'),
  ),
  output_modalities: alwaysWritten(
    'model.outputModalities',
    words(MODALITIES, ['text'], 'Kinds of content that an answer may contain.'),
  ),
  ...declaredOptions('model'),
  stops: stopsOption('model'),
  quantization: optionalField('model.quantization', QUANTIZATION),
  'pricing.prompt': rate(PROMPT_PRICE),
  'pricing.completion': rate(COMPLETION_PRICE),
  'pricing.image': optionalRate(INPUT_IMAGE_PRICE),
  'pricing.input_cache_read': optionalRate(PARTS.input_cache_read, 'that of `pricing.prompt`'),
  'pricing.input_cache_write': optionalRate(PARTS.input_cache_write, 'that of `pricing.prompt`'),
  'pricing.input_cache_write_1h': optionalRate(PARTS.input_cache_write_1h, 'that of `pricing.input_cache_write`'),
  'pricing.audio': optionalRate(PARTS.audio, 'that of `pricing.prompt`'),
  'pricing.input_audio_cache': optionalRate(PARTS.input_audio_cache, 'that of `pricing.audio`'),
  'pricing.internal_reasoning': optionalRate(PARTS.internal_reasoning, 'that of `pricing.completion`'),
  'pricing.audio_output': optionalRate(PARTS.audio_output, 'that of `pricing.completion`'),
  'pricing.image_output': optionalRate(PARTS.image_output, 'that of `pricing.completion`'),
  'pricing.web_search': optionalRate(PARTS.web_search),
  'pricing.character': optionalRate(CHARACTER_PRICE),
  'pricing.per_minute': optionalMinuteRate(),
  'pricing.per_call': {
    ...optionalRate(MODEL_CALL_PRICE),
    meaning: `Price of ${chargedPerCall((unit, kind, size) => `a ${unit}${size === undefined ? '' : ` (${size})`} of a model that makes \`${kind}\``).join(', and of ')}. Other models do not charge it.`,
  },
  'pricing.tiers': priceTiers(TIER_PRICES),
  'pricing.service_tiers': serviceTiers(TIER_PRICES),
  'params.model': field('model.upstreamModel', UPSTREAM_MODEL),
  'params.cap': optionalField(
    'model.cap',
    option<CapName | null>({
      takes: 'one of `max_tokens`, `max_completion_tokens`, `none`',
      meaning:
        'Request field in which the upstream API takes the limit of output tokens. With `none`, no limit is sent: the gateway ends the answer when it has used the locked amount.',
      optional: {
        text: 'the field that the consumer used, or the other one if the upstream API refuses it',
        fallback: null,
      },
      read: (value) => {
        const cap = CAP_NAMES.find((name) => name === value);
        if (cap === undefined)
          throw new WrongValue(`is ${show(value)}`, `one of ${CAP_NAMES.map((name) => `"${name}"`).join(', ')}`);
        return cap;
      },
    }),
  ),
  'params.max_output_tokens': outputBound(
    'Largest number of output tokens that the upstream API allows for one answer. A larger limit of a call is lowered to it. A call without a limit is sent with this one, and locks its price.',
    'the limit that the upstream API names when it refuses a larger one; until then no limit is sent for a call without one',
  ),
  'params.wires': optionalField('model.wires', wires()),
  'params.prefill': optionalField(
    'model.prefill',
    option<Prefill | null>({
      takes: `one of ${PREFILLS.map((one) => `\`${one}\``).join(', ')}`,
      meaning:
        'The upstream API goes on with an answer whose beginning is the last message of a chat request, as its assistant wrote it. With `message` it needs nothing more, with `prefix` the message has `prefix: true`, with `continue_final_message` the request has that field of vLLM. Such a model can [go on with a stream](use/fallbacks.md#streams-that-break-off) that another one broke off.',
      optional: { text: 'it takes no beginning', fallback: null },
      read(value) {
        const known = PREFILLS.find((one) => one === value);
        if (known === undefined) throw new WrongValue(`is ${show(value)}`, `one of ${PREFILLS.join(', ')}`);
        return known;
      },
    }),
  ),
  continue: flagField(
    'model.continues',
    trueOrFalse({
      optional: { text: 'false', fallback: false },
      meaning:
        'Whether a stream of this model that breaks off is [gone on with](use/fallbacks.md#streams-that-break-off) by another model of the request, if neither the request says it in `continue` nor its [API key](use/keys.md).',
    }),
    true,
  ),
  'params.forward': optionalField('model.forward', forwardedFields()),
  'params.strict_fields': flagField(
    'model.strictFields',
    trueOrFalse({
      optional: { text: 'false', fallback: false },
      meaning:
        "Whether the upstream API refuses request fields that are not in OpenAI's chat API. Then the usual extensions, such as `top_k`, `min_p` and `thinking`, reach the model only if `params.forward` lists them. Others are left out, and `x-tollgate-dropped` names them.",
    }),
    true,
  ),
  'params.image_tokens_max': optionalField(
    'model.imageTokensMax',
    optionalWhole({
      min: 1,
      max: 1_000_000,
      meaning: `Largest number of tokens that one image in a request may have. A call locks the price of this many for each image, and a claim beyond the lock is not charged. Raise it if the usage of the model reports more: \`${imageTokensMax({ upstreamModel: 'gpt-4o-mini' }, true)}\` for gpt-4o-mini.`,
      absent: `${IMAGE_TOKENS_OF_OTHERS} in a provider's file; in a gateway's own file that of the vendor's rule, if \`params.model\` is a model of OpenAI, Anthropic or Google, else ${IMAGE_TOKENS_OF_OWN}`,
    }),
  ),
  'params.searches_max': optionalField(
    'model.searchesMax',
    optionalWhole({
      min: 1,
      max: 1_000,
      meaning:
        'Largest number of searches of one call that does not set a limit itself. The gateway sends it as the limit, and locks the price of this many.',
      absent: String(SEARCHES_MAX),
    }),
  ),
  'params.hidden_reasoning_max': optionalTokens(
    'For a model that does not show its reasoning: how many tokens its usage may report for one answer beyond the output that came. More are not charged.',
    "`0` in a provider's file; in a gateway's own file all that the usage reports",
  ),
  'params.hidden_reasoning_usual': optionalTokens(
    'Tokens that are charged for such reasoning if the consumer leaves during an answer and its usage never comes.',
    '0',
  ),
};

interface ContextFields {
  readonly model: {
    /** Tokens of prompt and answer together. Locks are computed from it. */
    readonly contextLength: number;
    /** The provider declared no context: the number is ours, and is not shown. */
    readonly contextAssumed?: true;
  };
}

function contextLength() {
  return {
    ...optionalWhole({
      min: 1,
      max: TOKENS_MAX,
      absent: `${CONTEXT_ASSUMED} for locks; the listings say null`,
      meaning:
        'Largest number of tokens of one call, prompt and answer together. If neither the call has `max_tokens` nor the model `params.max_output_tokens`, the call locks the price of an answer that fills the rest of it. So set `params.max_output_tokens`.',
    }),
    toFields: (declared: number | null): ContextFields => ({
      model: declared === null ? { contextLength: CONTEXT_ASSUMED, contextAssumed: true } : { contextLength: declared },
    }),
    toValue: ({ model }: ContextFields) => (model.contextAssumed ? null : model.contextLength),
    write: (declared: number) => declared,
  };
}

function outputBound(meaning: string, absent: string): Option<number | null> {
  return optionalWhole({ min: 1, max: TOKENS_MAX, takes: 'whole number, 1 to context_length', meaning, absent });
}

function wires(): Option<readonly ModelWire[] | null> {
  const right = 'a list of APIs, such as ["messages"]';
  const { read } = textList({
    takes: right,
    meaning: '',
    max: 8,
    fault: (wire) => (isWire(wire) ? null : `is not one of ${WIRES.join(', ')}`),
  });
  return option<readonly ModelWire[] | null>({
    takes: `list of ${WIRES.map((wire) => `\`${wire}\``).join(', ')}`,
    meaning:
      `APIs of the upstream besides chat completions: ${TITLES}. ` +
      'A request of such an API is passed on without translation. `realtime` is OpenAI\'s Realtime API, a WebSocket. A model with `realtime` alone takes no chat requests; `["chat", "realtime"]` serves both.',
    optional: { text: '["chat"]', fallback: null },
    read: (value) => {
      if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, right);
      const known = read(value).filter(isWire);
      // Without `realtime` every model takes chat requests, so naming chat says nothing.
      const apis = known.includes(REALTIME) ? known : known.filter((wire) => wire !== 'chat');
      return apis.length === 0 ? null : apis;
    },
  });
}

const isWire = (wire: string): wire is ModelWire => (WIRES as readonly string[]).includes(wire);

/** Whether a model is offered over OpenAI's Realtime API. */
export const servesRealtime = ({ wires: modelWires }: { readonly wires?: readonly ModelWire[] }): boolean =>
  modelWires?.includes(REALTIME) === true;

function forwardedFields(): Option<'all' | readonly string[] | null> {
  const right = 'a list of names of request fields, such as ["top_n_sigma", "chat_template_kwargs"], or "all"';
  const { read } = textList({
    takes: right,
    meaning: '',
    max: FIELDS_MAX,
    fault: (field) => (FIELD.test(field) ? null : 'is not a name of 1 to 64 letters, digits, _ . : -'),
  });
  return option<'all' | readonly string[] | null>({
    takes: `list of at most ${FIELDS_MAX} names, or \`"all"\``,
    meaning:
      'More request fields that are passed on, besides [those of the chat API](reference/request-fields.md). ' +
      'What [costs money beside tokens](reference/prices.md#what-has-no-price) needs a price or its name in the list, also with `"all"`. ' +
      'A listed field for the output limit, such as `n_predict`, gets that limit.',
    optional: { text: 'none in a provider\'s file, `"all"` in a gateway\'s own', fallback: null },
    read: (value) => {
      if (value === 'all') return value;
      if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, right);
      return read(value);
    },
  });
}

function optionalTokens(meaning: string, absent: string): Option<number | null> {
  return optionalWhole({ min: 0, max: TOKENS_MAX, meaning, absent });
}

const target = {
  cost: modelCost(TIER_PRICES),
  ...apiOrSdkOptions('/chat/completions'),
  'params.own_keys': trueOrFalse({
    optional: { text: 'false', fallback: false },
    meaning:
      'Whether consumers may store keys of their own for this address, and call the model with them. Such a call costs `billing.own_key_bps` of the price. It has no effect for a provider that dials in, which never gets such a key.',
  }),
  'params.batches': trueOrFalse({
    optional: { text: 'false', fallback: false },
    meaning:
      "Whether the address takes batches in the form of OpenAI's API, at `/files` and `/batches`. Lines of a consumer's batch that this model serves are then sent as such a batch, and cost `pricing.service_tiers.batch`, which the model must have. It has no effect for a provider that dials in. See [Batches](reference/batches.md#half-the-price).",
  }),
  'params.head_timeout_ms': headTimeout('model'),
  'params.first_event_timeout_ms': firstEventTimeout('model'),
};

/** Numbers of reasoning tokens in one answer. */
interface HiddenReasoning {
  /** The most tokens that a usage claim may have beyond the shown ones. */
  readonly max: number;
  /** Tokens to charge if an answer was cut before its usage came. */
  readonly usual: number;
}

interface CombinedFields {
  readonly rates: Pick<Rates, 'tiers'>;
  /** The prices of service tiers, by their names. */
  readonly variants: Readonly<Record<string, Rates>>;
  readonly model: {
    /** The provider's limit of completion tokens. null if it declares none. */
    readonly maxOutputTokens: number | null;
    /** Reasoning that the model does not show. Absent if the provider declares none. */
    readonly hiddenReasoning?: HiddenReasoning;
  };
}

const baseRates = (values: Readonly<Record<string, unknown>>): Rates =>
  rates(
    Object.fromEntries(
      Object.entries(TIER_PRICES).map(([key, { meter }]) => [meter, values[`pricing.${key}`] as MicroUsd | null]),
    ),
  );

/** A price that is never charged is refused, and so is one that `tiers` and `service_tiers` would not have. */
function checkOwnPrices(
  values: Readonly<Record<string, unknown>>,
  complain: (key: string, wrong: string, right: string) => void,
): void {
  const outputs = values['output_modalities'] as readonly string[];
  for (const [output, { ownPrice }] of KINDS_OF_MODELS) {
    const key = `pricing.${ownPrice}`;
    if (ownPrice === undefined || values[key] === null) continue;
    if (!outputs.includes(output))
      complain(key, `is charged for ${output}, which is not in output_modalities`, `output_modalities = ["${output}"]`);
    for (const tiers of ['pricing.tiers', 'pricing.service_tiers'])
      if (values[tiers] !== null) complain(tiers, `is beside ${key}, which has no tiers`, 'leave one of them out');
  }
}

export const MODEL_BLOCK = defineBlock({
  primitive: 'model',
  offer,
  target,
  check(values, complain) {
    const { context_length: declared, max_output_tokens: besides, 'params.max_output_tokens': bound } = values;
    const largest = declared ?? CONTEXT_ASSUMED;
    if (besides !== null && bound !== null && besides !== bound)
      complain('max_output_tokens', `is ${besides}, but params.max_output_tokens is ${bound}`, 'one of the two');
    if ((bound ?? besides ?? 0) > largest)
      complain(
        bound === null ? 'max_output_tokens' : 'params.max_output_tokens',
        `is more than context_length, ${largest}${declared === null ? ' if it is not given' : ''}`,
        'at most context_length',
      );
    const { 'params.hidden_reasoning_max': hiddenMax, 'params.hidden_reasoning_usual': hiddenUsual } = values;
    if ((hiddenUsual ?? 0) > (hiddenMax ?? 0))
      complain(
        'params.hidden_reasoning_usual',
        `is more than params.hidden_reasoning_max, ${hiddenMax ?? 0}`,
        'at most params.hidden_reasoning_max',
      );
    if (values['pricing.input_audio_cache'] !== null && values['pricing.audio'] === null)
      complain('pricing.input_audio_cache', 'is the price of a part of the sound', 'give pricing.audio too');
    checkOwnPrices(values, complain);
  },
  combine({
    max_output_tokens: besides,
    'params.max_output_tokens': bound,
    'params.hidden_reasoning_max': max,
    'params.hidden_reasoning_usual': usual,
    'pricing.tiers': tiers,
    'pricing.service_tiers': writtenTiers,
    ...values
  }): CombinedFields {
    const base = baseRates(values);
    return {
      rates: completeTiers(base, tiers),
      variants: completeServiceTiers(base, writtenTiers),
      model: {
        maxOutputTokens: bound ?? besides,
        ...(max === null ? {} : { hiddenReasoning: { max, usual: usual ?? 0 } }),
      },
    };
  },
  separate: ({ rates, variants, model: { maxOutputTokens, hiddenReasoning } }) => ({
    'pricing.tiers': writeTiers(rates, rates.tiers, TIER_PRICES),
    'pricing.service_tiers': writeServiceTiers(rates, variants, TIER_PRICES),
    max_output_tokens: undefined,
    'params.max_output_tokens': maxOutputTokens ?? undefined,
    'params.hidden_reasoning_max': hiddenReasoning?.max,
    'params.hidden_reasoning_usual': hiddenReasoning?.usual,
  }),
  writtenLast: [],
  toTarget({ 'params.own_keys': ownKeys, 'params.batches': batches, cost, ...values }, complain, place) {
    const { 'params.head_timeout_ms': headMs, 'params.first_event_timeout_ms': firstEventMs } = values;
    const run = { ...toApiOrSdkTarget(values, complain, place), ...(cost === null ? {} : { cost }) };
    const withTimes = withTimeouts(run, headMs, firstEventMs);
    if (withTimes.kind === 'http')
      return {
        ...withTimes,
        ...(ownKeys ? { ownKeys: true as const } : {}),
        ...(batches ? { batches: true as const } : {}),
      };
    if (ownKeys)
      complain('params.own_keys', 'is true beside params.sdk', 'leave it out: a package takes no keys of consumers');
    if (batches) complain('params.batches', 'is true beside params.sdk', 'leave it out: a package takes no batches');
    return withTimes;
  },
});
