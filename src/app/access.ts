import { createDrain, type Payments } from '#gateway';
import {
  createAccountStates,
  createAttempts,
  createAuthenticator,
  createKeyStore,
  createLimitsStore,
  createMemberStore,
  createNonces,
  createProtectedResource,
  createRunTokens,
  createSessionCookies,
  createSignIn,
  createWebSessions,
} from '#auth';
import type { Opened } from './foundation.ts';
import type { Listener } from './server.ts';

export type Access = Opened<typeof openAccess>;

/** Authentication by API keys, wallets, access tokens, sessions and run tokens. */
export async function openAccess(listener: Listener) {
  const { config, database, ledger, identity, logger, outages, payments, ownOrigin, opened, now, elapsed } = listener;
  const keys = createKeyStore(database, { now });
  const limits = createLimitsStore(database, { now });
  const states = createAccountStates(database, now);
  const members = createMemberStore(database, { keys, limits, now });
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: elapsed });
  const signIn = await createSignIn({ ...config.signIn, chains: config.chains, attempts, now, elapsed });
  const nonces = createNonces({ secret: identity.secret('sign-in nonces'), database, now });
  const onError = (error: unknown) =>
    outages.failed('OAuth issuer', { err: error }, 'the keys of the OAuth issuer could not be fetched');
  const oauth = await createProtectedResource({ config, ownOrigin, attempts, now, elapsed, onError });
  if (oauth.warning !== null) logger.warn(oauth.warning);
  const sessions = createWebSessions(database, { times: config.sessions, now });
  const browsers = { sessions, cookies: createSessionCookies(config.publicUrl) };
  const runTokens = createRunTokens({ secret: identity.secret('run tokens'), now });
  const authenticator = createAuthenticator({
    keys,
    limits,
    states,
    members,
    signIn,
    attempts,
    accessTokens: oauth.accessTokens,
    browsers,
    runTokens,
    runGoesOn: async (parent) => (await ledger.find(parent))?.state === 'held',
    acceptDevelopmentKeys: config.mode === 'development',
    anonymous: payments.open,
    now,
  });
  opened.defer(() => authenticator.close());
  return {
    ...listener,
    keys,
    payments: {
      ...payments,
      callerOf: async (caller, paymentAttempt) =>
        authenticator.withBudgets(await payments.callerOf(caller, paymentAttempt)),
    } satisfies Payments,
    limits,
    states,
    members,
    attempts,
    signIn,
    nonces,
    oauth,
    runTokens,
    browsers,
    authenticator,
    drain: createDrain(authenticator.authenticate),
  };
}
