import type { IncomingHttpHeaders } from 'node:http';
import type { Caller } from '../../../src/server/accounts/caller.ts';
import { createAttempts } from '../../../src/gateway/auth/attempts.ts';
import { createAuthenticator, type AuthenticatorOptions } from '../../../src/gateway/auth/authenticator.ts';
import { signInError } from '../../../src/gateway/auth/siwx/message.ts';

/** An authenticator of a gateway at which no wallet can sign in, and any number of keys may fail. */
export function createKeyAuthenticator(options: Omit<AuthenticatorOptions, 'signIn' | 'attempts' | 'limits'>) {
  const { authenticate, close } = createAuthenticator({
    ...options,
    limits: { limitsOf: async () => [], onChange: () => () => {} },
    attempts: createAttempts({ perMinute: Number.POSITIVE_INFINITY, now: options.now }),
    signIn: {
      domains: [],
      known: () => null,
      addChains() {},
      verify: () => Promise.reject(signInError('not enabled')),
    },
  });
  return {
    authenticate: async (headers: IncomingHttpHeaders, calls = true): Promise<Caller> =>
      authenticate(headers, '192.0.2.1', calls),
    close,
  };
}
