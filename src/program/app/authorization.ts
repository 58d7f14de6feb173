import { createAttempts } from '#auth';
import { authorizationRoutes, createAuthorizationServer } from '#authorization';
import { createGuardedFetch } from '#network';
import { signInRequestRoutes } from '#pages';
import { mount } from './mount.ts';
import type { Protocols } from './protocols.ts';
import { originOf, ownUrlOf } from './server.ts';

/** Parts that the other routes of keys have too. */
type KeyParts = Pick<
  Parameters<typeof signInRequestRoutes>[0],
  'keys' | 'members' | 'ledger' | 'usage' | 'offers' | 'now'
>;

/** The gateway's own authorization server, and what the page asks on which people answer it. */
export async function mountAuthorization(protocols: Protocols, keyParts: KeyParts): Promise<void> {
  const { server, config, identity, authorizationState: state, oauth, keys, browsers, outages, nonces } = protocols;
  if (state === null) return;
  const { admit, count, countNewKey } = protocols.pipeline;
  const clientSecret = identity.secret('client secrets of the authorization server');
  const authorization = createAuthorizationServer({
    issuer: () => originOf(ownUrlOf(protocols)),
    config: config.authorization,
    identity,
    clientSecret,
    resources: oauth.resources,
    state,
    keys,
    fetch: createGuardedFetch({ allowPrivate: config.webhooks.allowPrivate }),
    countToken: (account, key) =>
      count({ account, key: { hash: key, label: '', development: false, allowedServices: null }, wallet: null }, 1),
    onError: (error) => outages.failed('authorization server', { err: error }, 'a request to sign in failed'),
    now: protocols.now,
  });
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: protocols.elapsed });
  const { cookies } = browsers;
  await mount(server, {
    authorization: authorizationRoutes({
      authorization,
      config: config.authorization,
      state,
      clientSecret,
      attempts,
      count,
    }),
    signInRequests: signInRequestRoutes({ ...keyParts, authorization, admit, countNewKey, nonces, cookies }),
  });
}
