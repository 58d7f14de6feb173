import type { LockRecord } from '#billing';
import { TOKEN_PARTS, toUsdNumber } from '#billing/amounts';
import { answerErrorOf, errorCodeOf, hasFailed } from '#billing/call-end';
import { type Call, errorOfCut } from '#call';
import type { ImplausibleClaim } from '#call/flags';
import { HTTP_ERRORS } from '#http';
import { PRIMITIVES } from '#config';
import { toCaip10 } from '#accounts/names';
import { objectOf, titled } from '../route-schemas.ts';

export const STATES = ['held', 'settled', 'released', 'expired'] as const satisfies readonly LockRecord['state'][];

export const micro = { type: 'integer', description: 'Micro-USD.' } as const;

/* Members of a call's record that clients of other gateways require. This gateway knows few of these facts. The
   others are null. */

/** The kind of call as those clients name it. null for a kind that they don't have. */
const API_TYPES: Readonly<Record<string, string>> = { model: 'completions', image: 'image', video: 'video' };

/** Members that are the same for every call. */
const CONSTANT = {
  origin: '',
  data_region: 'global',
  app_id: null,
  cache_discount: null,
  external_user: null,
  http_referer: null,
  moderation_latency: null,
  num_fetches: null,
  num_media_completion: null,
  preset_id: null,
  provider_responses: null,
  response_cache_source_id: null,
  router: null,
  upstream_id: null,
  upstream_inference_cost: null,
  user_agent: null,
  web_search_engine: null,
  workspace_id: null,
} as const;

const alwaysNull = { type: 'null', description: 'Always null here.' } as const;
const tokens = { type: ['integer', 'null'], description: 'As counted by the provider.' } as const;

export const otherClientsSchema = {
  ...Object.fromEntries(
    Object.entries(CONSTANT).map(([name, value]) => [name, value === null ? alwaysNull : { const: value }]),
  ),
  origin: { type: 'string', description: 'Always empty here.' },
  data_region: { type: 'string', description: 'Always `global` here.' },
  api_type: { type: ['string', 'null'], description: '`completions`, `image` or `video`; null for tools and agents.' },
  native_finish_reason: { type: ['string', 'null'], description: 'The same as `finish_reason`.' },
  native_tokens_prompt: tokens,
  native_tokens_completion: tokens,
  native_tokens_cached: tokens,
  native_tokens_reasoning: tokens,
  native_tokens_completion_images: {
    type: ['integer', 'null'],
    description: 'Tokens of pictures in the completion, where they have their own price.',
  },
  num_input_audio_prompt: {
    type: ['integer', 'null'],
    description: 'Tokens of sound in the prompt, where they have their own price.',
  },
  num_media_prompt: { type: ['integer', 'null'], description: 'Images in the prompt.' },
  num_search_results: { type: ['integer', 'null'], description: 'Searches that the provider ran and charged.' },
};

export const callProperties = {
  id: { type: 'string' },
  object: { type: 'string' },
  state: {
    type: 'string',
    enum: STATES,
    description:
      '`held` while the call runs, and afterwards while it waits for input from its client; then `settled`, `released` (nothing charged) or `expired` (the same, by time-out).',
  },
  waiting: { type: 'boolean', description: 'The money is locked, and the task waits for input from you.' },
  outcome: {
    type: ['string', 'null'],
    description:
      'How the run ended: `complete`, `cut` (it was stopped early, and the part that arrived is charged; `finish_reason` then says `cancelled`, `timeout` or `too_large` where the provider gave no reason), `free` (it reported a failure, or nothing arrived), `over_cap`, `failed`, or `continued` (it waited for input, and another call continues it). A batch ends as `completed`, `failed`, `expired` or `cancelled`. A run of calls that the gateway made for one request says how that ended, and costs nothing itself. null while it is held.',
  },
  failed: {
    type: 'boolean',
    description:
      'Whether it is over and nothing was charged, because nothing was served: `state` is `released` or `expired`, or `outcome` is `free`. Figures count calls as failed by this.',
  },
  account: { type: 'string', description: 'CAIP-10.' },
  api_key: { type: ['string', 'null'], description: 'Hash of the key that was used.' },
  request_id: { type: ['string', 'null'] },
  session_id: {
    type: ['string', 'null'],
    description: 'The session at `/realtime` of which the response is a part; null for all other calls.',
  },
  tags: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'What its consumer named it, in the header `x-tollgate-tags` or in `metadata`.',
  },
  primitive: { type: ['string', 'null'], enum: [...PRIMITIVES, null] },
  model: { type: ['string', 'null'], description: 'The service that served.' },
  service: { type: ['string', 'null'], description: 'The service that was called.' },
  tool: {
    type: ['string', 'null'],
    description: 'The tool of the service that was called; null if the service itself was called.',
  },
  continues: { type: ['string', 'null'], description: 'Id of the call that this call continues.' },
  provider: { type: ['string', 'null'], description: 'Id of the provider that was paid.' },
  provider_name: { type: ['string', 'null'] },
  streamed: { type: ['boolean', 'null'] },
  usage: { type: 'number', description: 'The same as `total_cost`.' },
  usage_details: {
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'Units that were metered, by meter.',
  },
  tokens_prompt: { type: 'integer', description: 'Includes tokens that were read from or written to a cache.' },
  tokens_completion: { type: 'integer' },
  tokens_cached: {
    type: ['integer', 'null'],
    description: 'Prompt tokens read from a cache, as reported by the provider.',
  },
  tokens_cache_written: {
    type: ['integer', 'null'],
    description: 'Prompt tokens written to a cache, as reported by the provider.',
  },
  tokens_reasoning: { type: ['integer', 'null'], description: 'Part of the completion, as reported by the provider.' },
  is_byok: { type: 'boolean', description: 'The call used your own key at the provider.' },
  is_batch: { type: 'boolean', description: 'A batch. Its lines are calls of their own, and it costs nothing itself.' },
  service_tier: {
    type: ['string', 'null'],
    description: 'The service tier in which the provider says that it served; null if it did not say.',
  },
  total_cost: { type: 'number', description: 'USD charged.' },
  cost_micro_usdc: micro,
  refunded_micro_usdc: {
    type: 'integer',
    description: 'In lists: the part of the cost that the operator gave back later. Absent without a refund.',
  },
  fee_micro_usdc: { ...micro, description: "The operator's part of the cost." },
  shortfall_micro_usdc: { ...micro, description: 'Cost that could not be charged.' },
  price: { type: ['string', 'null'], description: 'Version of the price that was charged.' },
  latency: { type: ['integer', 'null'], description: 'Milliseconds to the first byte.' },
  generation_time: { type: ['integer', 'null'], description: 'Milliseconds of the whole run.' },
  finish_reason: { type: ['string', 'null'] },
  estimated: {
    type: 'boolean',
    description: 'The gateway measured the usage itself, because the reply was cut before the provider reported it.',
  },
  cancelled: { type: 'boolean', description: 'The client left before the end.' },
  error: { type: ['string', 'null'], description: 'The message that its client got; null without an error.' },
  error_code: {
    type: ['string', 'null'],
    description:
      'The `code` of that error, or `client_gone`: the client left before its answer. Of an answer that reports a failure: `tool_error`, `task_failed`, `task_rejected`, or the code of its JSON-RPC error. null without an error, and for calls of earlier versions.',
  },
  status: {
    type: ['integer', 'null'],
    description:
      'The HTTP status of that error (499 for `client_gone`), also where a stream had begun with 200; 200 without an error; null while the call runs, and where it is not known.',
  },
  failed_attempts: {
    type: 'array',
    description: 'Requests to providers that failed, in their order.',
    items: titled(
      'FailedAttemptOfCall',
      objectOf({
        provider: { type: 'string' },
        service: { type: 'string' },
        error: { type: 'string', description: 'How it failed.' },
        upstream_status: { type: ['integer', 'null'], description: "The status of the provider's answer." },
        blame: {
          type: 'string',
          description: 'Whose fault it was: `provider`, `request`, `account` (too many of its requests) or `nobody`.',
        },
        duration_ms: { type: 'integer' },
      }),
    ),
  },
  flags: { type: 'array', items: { type: 'string' } },
  claims: {
    type: 'array',
    description:
      'What the flag `usage_implausible` is about: each claim of the provider that the work does not explain.',
    items: titled('ImplausibleClaim', {
      type: 'object',
      required: ['meter', 'claimed'],
      properties: {
        meter: {
          type: 'string',
          description: 'As in `usage_details`; `total` for all tokens; `pixel` for an image that was ordered.',
        },
        claimed: { type: ['number', 'null'], description: 'null for a claim that is no number.' },
        most: { type: 'integer', description: 'The most that the work can have used.' },
        least: { type: 'integer', description: 'In place of `most`, for a claim that is too small.' },
      },
    }),
  },
  parent: {
    type: ['string', 'null'],
    description: 'Id of the call under which this one was made, and from whose lock it was paid.',
  },
  created_at: { type: 'string' },
  resolved_at: { type: ['string', 'null'] },
} as const;

export const callSchema = {
  title: 'Call',
  type: 'object',
  required: Object.keys(callProperties).filter((name) => name !== 'waiting' && name !== 'refunded_micro_usdc'),
  properties: callProperties,
} as const;

/**
 * A call's record in the form that its account gets, without the ledger's transfers. Members that the record lacks are
 * null.
 */
export type CallView = ReturnType<typeof viewCall>;

/**
 * The CAIP-10 id of the account that was charged. Its network is the one that the wallet signed for, or else one of
 * `networks`.
 */
export function accountOfRecord(
  { account, lockDetail }: Pick<LockRecord, 'account' | 'lockDetail'>,
  networks: readonly string[],
): string {
  return accountOfCall(account, readFields(lockDetail), networks);
}

const accountOfCall = (account: string, call: Readonly<Record<string, unknown>>, networks: readonly string[]): string =>
  text(call['caip10']) ?? toCaip10(account, networks);

/** All tokens of the prompt or the completion. Those with their own price are counted at their own meters. */
const tokensOf = (usage: Readonly<Record<string, number>>, whole: 'prompt' | 'completion'): number =>
  TOKEN_PARTS[whole].reduce((sum, part) => sum + (usage[part] ?? 0), usage[whole] ?? 0);

export function viewCall(record: LockRecord, networks: readonly string[]) {
  const call = readFields(record.lockDetail);
  const run = readFields(record.detail);
  const usage = readCounts(record.usage);
  return {
    id: record.id,
    object: 'generation',
    state: record.state,
    outcome: text(run['outcome']),
    failed: hasFailed(record.state, run['outcome'], call['run'] === true),
    account: accountOfCall(record.account, call, networks),
    api_key: text(call['key']),
    request_id: text(call['requestId']),
    session_id: text(call['session']),
    tags: readTexts(call['tags']),
    primitive: text(call['primitive']),
    model: text(run['model']) ?? text(run['service']) ?? text(call['service']),
    service: text(call['service']),
    tool: text(call['operation']),
    continues: text(call['continues']),
    provider: text(run['provider']) ?? record.provider,
    provider_name: text(run['providerName']),
    streamed: typeof call['stream'] === 'boolean' ? call['stream'] : null,
    usage: toUsdNumber(record.charged),
    usage_details: usage,
    tokens_prompt: tokensOf(usage, 'prompt'),
    tokens_completion: tokensOf(usage, 'completion'),
    tokens_cached: whole(run['cached']),
    tokens_cache_written: whole(run['cacheWritten']),
    tokens_reasoning: whole(run['reasoning']),
    is_byok: run['ownKey'] === true,
    is_batch: call['batch'] === true,
    service_tier: text(run['serviceTier']),
    total_cost: toUsdNumber(record.charged),
    cost_micro_usdc: Number(record.charged),
    fee_micro_usdc: Number(record.fee),
    shortfall_micro_usdc: Number(record.shortfall),
    price: record.price,
    latency: whole(run['firstByteMs']),
    generation_time: whole(run['durationMs']),
    finish_reason: text(run['finishReason']),
    estimated: run['estimated'] === true,
    cancelled: run['clientGone'] === true,
    ...errorOf(record, call, run),
    failed_attempts: attemptsOf(run['failedAttempts']),
    flags: Array.isArray(run['flags']) ? run['flags'].filter((flag) => typeof flag === 'string') : [],
    claims: Array.isArray(run['claims']) ? (run['claims'] as readonly ImplausibleClaim[]) : [],
    parent: record.parent,
    created_at: new Date(record.createdAt).toISOString(),
    resolved_at: record.resolvedAt === null ? null : new Date(record.resolvedAt).toISOString(),
  };
}

/** The error that the client of a call got, from its record. */
function errorOf(
  { state, charged, provider }: LockRecord,
  call: Readonly<Record<string, unknown>>,
  run: Readonly<Record<string, unknown>>,
) {
  const cut = run['cut'] as Parameters<typeof errorOfCut>[0] | undefined;
  if (cut && cut.reason !== 'cancelled') {
    const providerName = text(run['providerName']) ?? provider ?? '';
    const { message } = errorOfCut(cut, { providerName, charged });
    return { error: message, error_code: cut.code, status: HTTP_ERRORS[cut.code].status };
  }
  const code = errorCodeOf(state, call, run);
  // Its provider has answered, with an error.
  const isAnswer = run['errorCode'] === undefined && answerErrorOf(call['primitive'], run['finishReason']) !== null;
  if (isAnswer) return { error: null, error_code: code, status: 200 };
  const error = text(run['error']) ?? (code === CLIENT_GONE ? (cut?.message ?? null) : null);
  const ofCode = code === null ? null : code === CLIENT_GONE ? CLIENT_GONE_STATUS : statusOfCode(code);
  return { error, error_code: code, status: state === 'settled' && code === null ? 200 : ofCode };
}

const CLIENT_GONE = 'client_gone';
const CLIENT_GONE_STATUS = 499;

const statusOfCode = (code: string): number | null =>
  Object.hasOwn(HTTP_ERRORS, code) ? HTTP_ERRORS[code as keyof typeof HTTP_ERRORS].status : null;

const attemptsOf = (attempts: unknown) =>
  (Array.isArray(attempts) ? (attempts as NonNullable<Call['failedAttempts']>) : []).map(
    ({ provider, service, error, status, blame, durationMs }) => ({
      provider,
      service,
      error,
      upstream_status: status,
      blame,
      duration_ms: durationMs,
    }),
  );

interface ShownCall {
  readonly primitive: string | null;
  /** Units by meter. */
  readonly usage_details: Readonly<Record<string, number>>;
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  readonly tokens_cached: number | null;
  readonly tokens_reasoning: number | null;
  readonly finish_reason: string | null;
}

export function viewForOtherClients({ primitive, usage_details: usage, ...call }: ShownCall) {
  return {
    ...CONSTANT,
    api_type: primitive === null ? null : (API_TYPES[primitive] ?? null),
    native_finish_reason: call.finish_reason,
    native_tokens_prompt: usage['prompt'] === undefined ? null : call.tokens_prompt,
    native_tokens_cached: call.tokens_cached,
    native_tokens_reasoning: call.tokens_reasoning,
    native_tokens_completion: usage['completion'] === undefined ? null : call.tokens_completion,
    native_tokens_completion_images: usage['image_output'] ?? null,
    num_input_audio_prompt: usage['audio'] ?? null,
    num_media_prompt: usage['image'] ?? null,
    num_search_results: usage['web_search'] ?? null,
  };
}

/**
 * Parses a JSON object of the record. Returns an empty object if it is absent, because older records lack some fields.
 */
function readFields(json: string | null): Readonly<Record<string, unknown>> {
  if (json === null) return {};
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export function readCounts(json: string | null): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(readFields(json)).filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])),
  );
}

const readTexts = (value: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(typeof value === 'object' && value !== null ? value : {}).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const whole = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : null;
