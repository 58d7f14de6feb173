import { oneLine } from '#security';
import { BOUNDS } from '../bounds.ts';
import { foreignObject } from '../foreign.ts';

/**
 * One attempt failed.
 * - `retryable`: another provider may succeed.
 * - `attributedTo`: `provider` counts against the provider's health. `request` means that the provider refused the
 *   request itself (4xx); the client gets the refusal, unless another provider serves the request. `account` means that
 *   the account already has as many requests there as allowed. `nobody` counts against nobody.
 * - `unsent`: the provider received no part of the request, so trying another provider adds no load.
 * - `unreachable`: the provider could not be reached.
 * - `absent`: the provider is not connected to any gateway, and did not connect while the call waited.
 * - `busy`: the provider has too many requests: of this gateway (`rate`), or of everybody (`load`).
 * - `unpaid`: the account at the provider is used up. Its words are for the owner of that account alone.
 * - `timedOut`: the reply did not begin, or did not continue, in time.
 * - `tooLarge`: the reply is larger than the gateway accepts. The consumer may have caused that, so it is treated as
 *   a refused request.
 * - `replyText`: the first words of the provider's reply, as a line of text. Only the provider and the operator see
 *   them.
 * - `unheld`: in addition to `tooLarge`, the gateway only has no memory for it now, so a later request may succeed.
 */
export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure';
  readonly status: number | null;
  readonly retryable: boolean;
  readonly attributedTo: 'provider' | 'request' | 'account' | 'nobody';
  /** The provider's message, safe to show to clients; null without a message. */
  readonly detail: string | null;
  /** The word by which the provider names the reason, safe to show to clients; null without one. */
  readonly code: string | null;
  readonly retryAfterS: number | undefined;
  readonly unsent: boolean;
  readonly unreachable: boolean;
  readonly absent: boolean;
  readonly tooLarge: boolean;
  readonly unheld: boolean;
  /** The content of the request violates the provider's policy. */
  readonly policy: boolean;
  readonly busy: 'rate' | 'load' | null;
  readonly unpaid: Unpaid | null;
  readonly timedOut: boolean;
  readonly replyText: string | null;
  readonly received: number;
  constructor(
    message: string,
    options: {
      status?: number | null;
      retryable: boolean;
      attributedTo: 'provider' | 'request' | 'account' | 'nobody';
      detail?: string | null;
      code?: string | null;
      retryAfterS?: number | undefined;
      unsent?: boolean;
      unreachable?: boolean;
      absent?: boolean;
      tooLarge?: boolean;
      unheld?: boolean;
      policy?: boolean;
      busy?: 'rate' | 'load' | null;
      unpaid?: Unpaid | null;
      timedOut?: boolean;
      replyText?: string | null;
      received?: number;
      cause?: unknown;
    },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = options.status ?? null;
    this.retryable = options.retryable;
    this.attributedTo = options.attributedTo;
    this.detail = options.detail ?? null;
    this.code = options.code ?? null;
    this.retryAfterS = options.retryAfterS;
    this.unsent = options.unsent ?? false;
    this.unreachable = options.unreachable ?? false;
    this.absent = options.absent ?? false;
    this.tooLarge = options.tooLarge ?? false;
    this.unheld = options.unheld ?? false;
    this.policy = options.policy ?? false;
    this.busy = options.busy ?? null;
    this.unpaid = options.unpaid ?? null;
    this.timedOut = options.timedOut ?? false;
    this.replyText = options.replyText ?? null;
    this.received = options.received ?? 0;
  }

  /** Everything that the provider itself told, for a failure that stands for this one. */
  get providerFacts(): Pick<UpstreamFailure, 'status' | 'busy' | 'replyText' | 'detail' | 'retryAfterS'> {
    const { status, busy, replyText, detail, retryAfterS } = this;
    return { status, busy, replyText, detail, retryAfterS };
  }

  /** The same failure, with the reply that it is about: its status, and its first words if no others are known. */
  ofReply(status: number, body: string): UpstreamFailure {
    const replyText = this.replyText ?? firstWords(body);
    return new UpstreamFailure(this.message, Object.assign({}, this, { status, replyText, cause: this.cause }));
  }

  /** The same failure with another message for clients. */
  withDetail(detail: string | null): UpstreamFailure {
    return new UpstreamFailure(this.message, Object.assign({}, this, { detail, cause: this.cause }));
  }
}

/** A provider's answer that an account has no money or quota left: its word for that, such as `insufficient_quota`. */
interface Unpaid {
  readonly code: string;
  readonly words: string | null;
}

/**
 * The failure of a reply that is larger than the gateway accepts. It is not retryable, because another provider's reply
 * would probably be as large. `received` is the number of bytes received.
 */
export function tooLarge(
  message: string,
  {
    status = null,
    received = 0,
    cause,
  }: { readonly status?: number | null; readonly received?: number; readonly cause?: unknown } = {},
): UpstreamFailure {
  return new UpstreamFailure(message, {
    status,
    retryable: false,
    attributedTo: 'nobody',
    tooLarge: true,
    received,
    cause,
  });
}

/**
 * Statuses that refuse the request itself. Most other providers would refuse it too, and the consumer should see the
 * reason.
 */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422, 451]);

/** Statuses that a provider may use to refuse the content of a request. */
const POLICY_STATUSES: ReadonlySet<number> = new Set([400, 403, 422, 451]);
/** The error codes of OpenAI, Azure, OpenRouter and other APIs for refused content. */
const POLICY = /^(?:content_policy(?:_violation)?|content_filter|moderation(?:_blocked|_error)?|safety)$/i;

/** Statuses and names of errors of a provider with too many requests: of this gateway, or of everybody. */
const BUSY: ReadonlyMap<unknown, 'rate' | 'load'> = new Map<unknown, 'rate' | 'load'>([
  [429, 'rate'],
  ['rate_limit_error', 'rate'],
  ['rate_limit_exceeded', 'rate'],
  [529, 'load'],
  ['overloaded_error', 'load'],
  ['overloaded', 'load'],
]);
/**
 * The code of a 429 by which a package, also behind a provider's proxy, says that the consumer's own calls, or those of
 * all, have taken what is shared out. The provider has not failed then.
 */
const SHARE_TAKEN = 'share_taken';
/** Codes by which a provider says that the account is used up. Waiting does not help then. */
const UNPAID = /quota|billing|credit|balance/i;
/** Ids of the operator's account at the provider, which messages about limits contain. */
const ACCOUNT_IDS = /\b(?:org|organization|proj|project|acct|account|user)[-_][A-Za-z0-9_-]{6,}/g;

const DETAIL_CHARACTERS_MAX = 300;

/**
 * The failure for a provider's error status. The provider's message is shown to the client only if the provider refused
 * the request or has too many of them. If it refused the gateway (a wrong key, an empty account), the message may
 * contain secrets. Then it is only in `cause`, for the operator.
 */
export function toFailure(status: number, body: Uint8Array, retryAfterS: number | undefined): UpstreamFailure {
  const parsed = foreignObject(body, BOUNDS.providerError);
  const words = wordsOf(errorIn(parsed)) ?? wordsOf(parsed);
  const policy = POLICY_STATUSES.has(status) && isPolicy(errorIn(parsed) ?? parsed);
  const refusal = policy || REFUSALS.has(status);
  const busy = refusal ? null : busyOf(status, errorIn(parsed) ?? parsed);
  const unpaid = unpaidOf(errorIn(parsed) ?? parsed);
  const isShare = status === 429 && codeOf(errorIn(parsed), null) === SHARE_TAKEN;
  return new UpstreamFailure(`it answered with status ${status}`, {
    status,
    retryable: !refusal,
    attributedTo: refusal ? 'request' : isShare ? 'account' : 'provider',
    policy,
    busy,
    unpaid: unpaid === null ? null : { code: unpaid, words: withoutAccount(words) },
    detail: refusal ? words : busy && withoutAccount(words),
    code: refusal ? codeOf(errorIn(parsed) ?? parsed, words) : null,
    retryAfterS: isShare ? (retryAfterS ?? 1) : retryAfterS,
    replyText: words ?? firstWords(Buffer.from(body.subarray(0, WORDS_BYTES_MAX)).toString()),
    cause: words === null ? undefined : new Error(words),
  });
}

/** The failure for a reply that cannot be used. Another provider may succeed. */
export function malformed(what: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(what, { retryable: true, attributedTo: 'provider', cause });
}

/** Whether the `error` of a reply says anything. Some servers write an empty one beside a good answer. */
export function isError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return Boolean(error);
  return Object.values(error).some(Boolean);
}

/** The failure for an error object instead of a reply, or in the middle of a reply. */
export function failedByItsOwnWords(error: unknown): UpstreamFailure {
  const words = wordsOf(error) ?? 'no reason given';
  return new UpstreamFailure('it reported an error instead of a reply', {
    retryable: true,
    attributedTo: 'provider',
    // Its words are not shown, because nothing takes secrets out of a reply.
    busy: busyOf(null, error),
    replyText: words,
    cause: new Error(words),
  });
}

/**
 * The failure for an error inside the only choice of a reply, which aggregators write. Its words are shown, as of a
 * busy provider, except for those about the gateway's own account.
 */
export function failedInChoice(error: unknown): UpstreamFailure {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const isOurs = unpaidOf(error) !== null || (typeof code === 'number' && REFUSES_GATEWAY.has(code));
  const failure = failedByItsOwnWords(error);
  return isOurs ? failure : failure.withDetail(withoutAccount(wordsOf(error)));
}

/** Codes of refusals of the gateway's own key or account. */
const REFUSES_GATEWAY: ReadonlySet<number> = new Set([401, 402, 403, 407]);

const errorIn = (parsed: unknown): unknown => (parsed as { readonly error?: unknown } | null)?.error;

function isPolicy(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, type } = error as { readonly code?: unknown; readonly type?: unknown };
  return [code, type].some((word) => typeof word === 'string' && POLICY.test(word));
}

/** Says of whose requests a provider has too many; null if of nobody's, or if the operator would have to pay first. */
function busyOf(status: number | null, error: unknown): 'rate' | 'load' | null {
  const { code, type } = (error ?? {}) as { readonly code?: unknown; readonly type?: unknown };
  if (unpaidOf(error) !== null) return null;
  return BUSY.get(status) ?? BUSY.get(code) ?? BUSY.get(type) ?? null;
}

/** The word by which a provider says that the account is used up; null if it does not. */
function unpaidOf(error: unknown): string | null {
  const { code, type } = (error ?? {}) as { readonly code?: unknown; readonly type?: unknown };
  const word = [code, type].find((one) => typeof one === 'string' && CODE.test(one) && UNPAID.test(one));
  return (word as string | undefined) ?? null;
}

const withoutAccount = (words: string | null): string | null => words?.replace(ACCOUNT_IDS, '…') ?? null;

const CODE = /^[a-z][a-z0-9_.-]{0,63}$/i;

/**
 * The word by which a provider names the reason of its refusal. Many providers name a prompt that is too long only in
 * their message, but programs compare the code that OpenAI's API has for it.
 */
function codeOf(error: unknown, words: string | null): string | null {
  const code = (error as { readonly code?: unknown } | null)?.code;
  if (typeof code === 'string' && CODE.test(code)) return code;
  return words !== null && contextExceeded(words) !== null ? 'context_length_exceeded' : null;
}

function wordsOf(value: unknown): string | null {
  if (typeof value === 'string') return printable(value);
  if (typeof value !== 'object' || value === null) return null;
  const { message, detail } = value as { readonly message?: unknown; readonly detail?: unknown };
  if (typeof message === 'string') return printable(message);
  return typeof detail === 'string' ? printable(detail) : null;
}

/** So many bytes of a body are looked at for its first words, which may be behind much white space. */
const WORDS_BYTES_MAX = 4_096;
/** The first words of a text that is no message of a known form, such as a page of HTML. Secrets must be out of it. */
export const firstWords = (text: string): string | null =>
  oneLine(text.trimStart()).slice(0, DETAIL_CHARACTERS_MAX) || null;
const printable = (text: string) => oneLine(text.slice(0, DETAIL_CHARACTERS_MAX)) || null;

/** A prompt that is longer than a model takes. All members are in tokens. */
interface ContextExceeded {
  /** null if the provider does not say. */
  readonly prompt: number | null;
  /** The requested length of the answer; null if the provider does not say. */
  readonly answer: number | null;
  readonly maximum: number | null;
}

/** Words by which services refuse a prompt that is too long. */
const WORDS =
  /maximum context length|context_length_exceeded|exceeds? the (?:model'?s? )?(?:maximum )?context|longer than the maximum model length|exceeds the available context size|prompt is too long|context window|input is too long/i;
const MAXIMUM =
  /(?:context (?:length|window|size|limit)(?: of the model)?(?: is|:| of)?|> ?|maximum model length of|available context size \()\s*\(?([\d,]+)/i;
const PROMPT =
  /(?<![\d,])([\d,]+) in the (?:messages|prompt|input)|(?<![\d,])([\d,]+) (?:input|prompt) tokens|prompt (?:is too long|contains(?: at least)?|has)[^\d]{0,20}([\d,]+)|request \(([\d,]+) tokens\)|resulted in ([\d,]+)|requested ([\d,]+) tokens(?! \()/i;
const ANSWER =
  /(?<![\d,])([\d,]+) (?:in|for) the (?:completion|output)|(?<![\d,])([\d,]+) output tokens|(?:max_tokens|max_completion_tokens)['"`]? is too large: ([\d,]+)/i;

/** The numbers in the refusal of a prompt that is too long; null for another refusal. */
export function contextExceeded(message: string): ContextExceeded | null {
  if (!WORDS.test(message)) return null;
  return { prompt: numberIn(PROMPT, message), answer: numberIn(ANSWER, message), maximum: numberIn(MAXIMUM, message) };
}

function numberIn(pattern: RegExp, message: string): number | null {
  const digits = pattern
    .exec(message)
    ?.slice(1)
    .find((group) => group !== undefined);
  return digits === undefined ? null : Number(digits.replaceAll(',', ''));
}
