import type { Database } from '#store';
import type { Ledger } from '#billing';
import type { Config } from '#config';
import {
  createAttempts,
  createAuthenticator,
  createKeyStore,
  createNonces,
  createProtectedResource,
  createRunTokens,
  createSignIn,
  type createIdentity,
} from '#auth';
import type { Logger } from '#observe';

export interface AccessDeps {
  readonly config: Config;
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'find'>;
  readonly identity: ReturnType<typeof createIdentity>;
  readonly logger: Logger;
  /** Whether callers without a credential are let in where they can pay for the call. */
  readonly anonymous: boolean;
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets. */
  readonly elapsed: () => number;
}

/** Who gets in: API keys, wallets, access tokens and run tokens. Close the authenticator at the end. */
export async function openAccess({ config, database, ledger, identity, logger, anonymous, now, elapsed }: AccessDeps) {
  const keys = createKeyStore(database, { now });
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: elapsed });
  const signIn = await createSignIn({ ...config.signIn, chains: config.chains, attempts, now, elapsed });
  const nonces = createNonces({ secret: identity.secret('sign-in nonces'), database, now });
  const onError = (error: unknown) => logger.warn({ err: error }, 'the keys of the OAuth issuer could not be fetched');
  const oauth = await createProtectedResource({ config, attempts, now, elapsed, onError });
  if (oauth.warning !== null) logger.warn(oauth.warning);
  const runTokens = createRunTokens({ secret: identity.secret('run tokens'), now });
  const authenticator = createAuthenticator({
    keys,
    signIn,
    attempts,
    accessTokens: oauth.accessTokens,
    runTokens,
    runGoesOn: async (parent) => (await ledger.find(parent))?.state === 'held',
    acceptDevelopmentKeys: config.mode === 'development',
    anonymous,
    now,
  });
  return { keys, attempts, signIn, nonces, oauth, runTokens, authenticator };
}
