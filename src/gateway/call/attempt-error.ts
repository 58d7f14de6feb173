import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import type { Offer } from '#catalog';

const BUSY = {
  rate: ['rate_limit_exceeded', 'limits the rate of its requests'],
  load: ['overloaded', 'is overloaded'],
} as const;

/**
 * The error that the consumer gets for the failure of the last attempt. A refused request keeps its meaning. A provider
 * that is away may return, and one with too many requests will have fewer, so the error says when to retry. Everything
 * else is the provider's failure.
 */
export function errorOfAttempt(
  failure: UpstreamFailure,
  { provider: { name } }: Offer,
  { stream }: { readonly stream: boolean },
): GatewayError {
  const detail = failure.detail ? `: ${failure.detail}` : '';
  const providerCode = failure.code ?? undefined;
  if (failure.policy)
    return new GatewayError('content_policy', `Provider ${name} refused the content of the request${detail}`, {
      cause: failure,
      providerCode,
    });
  if (failure.attributedTo === 'request') {
    const code =
      failure.status === 413 ? 'payload_too_large' : failure.status === 422 ? 'unprocessable' : 'invalid_request';
    return new GatewayError(code, `Provider ${name} refused the request${detail}`, { cause: failure, providerCode });
  }
  if (failure.unheld)
    return new GatewayError(
      'service_unavailable',
      'The memory of this gateway for large replies is full: retry in a moment',
      {
        cause: failure,
        retryAfterS: failure.retryAfterS,
      },
    );
  if (failure.tooLarge)
    return new GatewayError(
      'unprocessable',
      `The reply of provider ${name} cannot be used: ${failure.message}. Ask for less in one request`,
      { cause: failure },
    );
  if (failure.absent)
    return new GatewayError('no_provider_healthy', `Provider ${name} is not connected at the moment`, {
      cause: failure,
      retryAfterS: 1,
    });
  if (failure.busy) {
    const [code, words] = BUSY[failure.busy];
    return new GatewayError(code, `Provider ${name} ${words}${detail}`, {
      cause: failure,
      retryAfterS: failure.retryAfterS,
    });
  }
  if (failure.attributedTo === 'account')
    return new GatewayError('rate_limit_exceeded', failure.message, { cause: failure, retryAfterS: 1 });
  return new GatewayError('provider_unavailable', `Provider ${name} failed: ${failure.message}${detail}`, {
    cause: failure,
    retryAfterS: failure.retryAfterS,
    ...(failure.timedOut && !stream ? UNREPEATED : {}),
  });
}

/** Clients' libraries would send it again at once, while its provider may still be at work for the one before. */
export const UNREPEATED = { headers: { 'x-should-retry': 'false' } };

/** Answers about a key and its account: not known, without money, not allowed, too many requests. */
const OF_A_KEY: ReadonlySet<number> = new Set([401, 402, 403, 429]);

/** Google's answer to a wrong key has the status of a wrong request. */
const NAMES_KEY = /\bapi[ _-]?key\b/i;

/** Whether a provider refused the consumer's own key, or the account that the key belongs to. */
export const refusesKey = ({ status, detail }: UpstreamFailure): boolean =>
  status !== null && (OF_A_KEY.has(status) || (status === 400 && NAMES_KEY.test(detail ?? '')));

/**
 * Whether a failure of a call with a consumer's own key says something about the provider. Any other may be due to the
 * account of the key, which lacks the model or money, and could take the provider away from all others.
 */
export const isOutage = ({ status, unreachable, timedOut, tooLarge }: UpstreamFailure): boolean =>
  (status !== null && status >= 500) || unreachable || timedOut || tooLarge;

/** The failure as the log and the figures have it. */
export const nobodysFault = ({ message, status, retryable, detail, cause }: UpstreamFailure): UpstreamFailure =>
  new UpstreamFailure(message, { status, retryable, detail, cause, attributedTo: 'nobody' });

/**
 * The provider says that the request is wrong, or its reply is too large, which the consumer may have caused by asking
 * for too much.
 */
export const isRefusal = ({ attributedTo, tooLarge, unheld }: UpstreamFailure): boolean =>
  attributedTo === 'request' || (tooLarge && !unheld);
