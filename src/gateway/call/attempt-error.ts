import { GatewayError } from '#errors';
import type { UpstreamFailure } from '#wire';
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
