import { oneLine } from '../printable.ts';
import { UpstreamFailure } from '../upstream-failure.ts';
import { contextExceeded } from './context-exceeded.ts';

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
/** Codes by which a provider says that the account of the gateway's operator is used up. Waiting does not help then. */
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
  const parsed = parsedBody(body);
  const words = wordsOf(errorIn(parsed)) ?? wordsOf(parsed);
  const policy = POLICY_STATUSES.has(status) && isPolicy(errorIn(parsed) ?? parsed);
  const refusal = policy || REFUSALS.has(status);
  const busy = refusal ? null : busyOf(status, errorIn(parsed) ?? parsed);
  return new UpstreamFailure(`it answered with status ${status}`, {
    status,
    retryable: !refusal,
    attributedTo: refusal ? 'request' : 'provider',
    policy,
    busy,
    detail: refusal ? words : busy && withoutAccount(words),
    code: refusal ? codeOf(errorIn(parsed) ?? parsed, words) : null,
    retryAfterS,
    cause: words === null ? undefined : new Error(words),
  });
}

/** The failure for a reply that cannot be used. Another provider may succeed. */
export function malformed(what: string, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(what, { retryable: true, attributedTo: 'provider', cause });
}

/** The failure for an error object instead of a reply, or in the middle of a reply. */
export function failedByItsOwnWords(error: unknown): UpstreamFailure {
  const words = wordsOf(error) ?? 'no reason given';
  return new UpstreamFailure('it reported an error instead of a reply', {
    retryable: true,
    attributedTo: 'provider',
    // Its words are not shown, because nothing takes secrets out of a reply.
    busy: busyOf(null, error),
    cause: new Error(words),
  });
}

function parsedBody(body: Uint8Array): unknown {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

const errorIn = (parsed: unknown): unknown => (parsed as { readonly error?: unknown } | null)?.error;

function isPolicy(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, type } = error as { readonly code?: unknown; readonly type?: unknown };
  return [code, type].some((word) => typeof word === 'string' && POLICY.test(word));
}

/** Says of whose requests a provider has too many; null if of nobody's, or if the operator would have to pay first. */
function busyOf(status: number | null, error: unknown): 'rate' | 'load' | null {
  const { code, type } = (error ?? {}) as { readonly code?: unknown; readonly type?: unknown };
  if ([code, type].some((word) => typeof word === 'string' && UNPAID.test(word))) return null;
  return BUSY.get(status) ?? BUSY.get(code) ?? BUSY.get(type) ?? null;
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

const printable = (text: string) => oneLine(text.slice(0, DETAIL_CHARACTERS_MAX)) || null;
