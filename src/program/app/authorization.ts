import { createAttempts, peopleRoutes } from '#auth';
import { authorizationRoutes, createAuthorizationServer } from '#authorization';
import { createGuardedFetch } from '#network';
import { signInRequestRoutes } from '#pages';
import type { AccountParts } from './accounts.ts';
import { originOf, ownUrlOf } from './addresses.ts';
import type { Phases } from './calls.ts';
import { API, mount } from './mount.ts';

/** The gateway's own authorization server, and what the page asks on which people answer it. */
export async function mountAuthorization({ foundation, access, calls }: Phases, parts: AccountParts): Promise<void> {
  const { config, identity, outages, now, elapsed } = foundation;
  const { http, authorizationState: state, oauth, keys, browsers, nonces } = access;
  if (state === null) return;
  const { admit, count, countNewKey } = calls.pipeline;
  const clientSecrets = {
    id: identity.receiptKey.id,
    key: (id: string | null) => identity.secretBy('client secrets of the authorization server', id),
  };
  const onError = (error: unknown) =>
    outages.failed('authorization server', { err: error }, 'a request to sign in failed');
  // A change of a key costs one look-up. Most end nothing.
  keys.onChange((hash) => void state.endGrant(hash).catch(onError));
  const authorization = createAuthorizationServer({
    issuer: () => originOf(ownUrlOf(config, http.server)),
    config: config.authorization,
    identity,
    clientSecrets,
    resources: oauth.resources,
    state,
    keys,
    fetch: createGuardedFetch({ allowPrivate: config.webhooks.allowPrivate }),
    countToken: (account, key) =>
      count({ account, key: { hash: key, label: '', development: false, access: null }, wallet: null }, 1),
    onError,
    now,
  });
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: elapsed });
  await mount(http.server, {
    authorization: authorizationRoutes({
      authorization,
      config: config.authorization,
      state,
      clientSecrets,
      attempts,
      count,
      now,
    }),
    signInRequests: signInRequestRoutes({
      ...parts,
      authorization,
      admit,
      countNewKey,
      nonces,
      cookies: browsers.cookies,
    }),
  });
}

export async function mountPeople({ foundation, access, calls }: Phases): Promise<void> {
  const { config, identity, now, elapsed } = foundation;
  const { http, people, browsers, nonces } = access;
  if (people === null) return;
  const routes = peopleRoutes({
    provider: people.provider,
    people,
    browsers,
    nonces,
    count: calls.pipeline.count,
    attempts: createAttempts({ perMinute: config.signIn.failuresPerMinute, now: elapsed }),
    adminNetworks: config.adminNetworks,
    origin: () => originOf(ownUrlOf(config, http.server)),
    secret: identity.accepted('sign-ins of people'),
    onError: people.onError,
    now,
  });
  await mount(http.server, { people: routes }, API);
}
