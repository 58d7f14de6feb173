import type { FastifyInstance } from 'fastify';
import { tagsOfLock } from '#billing';
import { configuredNames, createOwnOrigin, createTrust, type OwnOrigin, type Trust } from '#security';
import { allowPages, createDrain, createServer, type Drain } from '#http';
import { type Catalog, createCatalog } from '#catalog';
import type { Payments } from '#payments';
import { payersWithBudgets } from '#call/compose';
import { countAnswers } from '#observe';
import { CHAT_WIRES, formOfErrors } from '#openai';
import { addWebPages, referenceRoutes, type WebPages } from '#pages';
import {
  type AccountStates,
  createAccountStates,
  createLimitsStore,
  createMemberStore,
  createProviderKeys,
  type LimitsStore,
  type MemberStore,
  type ProviderKeys,
} from '#accounts';
import {
  type Authenticator,
  type ChallengeFor,
  type ClientSecrets,
  createAttempts,
  createAuthenticator,
  createClientSecrets,
  createKeyStore,
  createNonces,
  createProtectedResource,
  createRunTokens,
  createSessionCookies,
  createSignIn,
  createWebSessions,
  type KeyStore,
  type Nonces,
  type ProtectedResource,
  type RunTokens,
  type SessionCookies,
  type SignIn,
  type WebSessions,
} from '#auth';
import { createStateStore, createTokenLookup, type StateStore } from '#authorization';
import { readBuild, VERSION } from '../../foundation/version.ts';
import { originOf, ownUrlOf } from './addresses.ts';
import type { Foundation } from './foundation.ts';
import type { Money } from './money.ts';
import type { Observers } from './observers.ts';
import { type OpenPeople, openPeople } from './people.ts';

/** Phase 4: the HTTP server, and who may call through it. */
export interface Access {
  readonly http: HttpListener;
  readonly keys: KeyStore;
  readonly limits: LimitsStore;
  readonly states: AccountStates;
  readonly members: MemberStore;
  readonly providerKeys: ProviderKeys;
  readonly signIn: SignIn;
  readonly nonces: Nonces;
  /** The gateway as a resource whose access tokens an issuer signs. */
  readonly oauth: ProtectedResource;
  /** The rows of the gateway's own authorization server. null without one. */
  readonly authorizationState: StateStore | null;
  readonly runTokens: RunTokens;
  readonly clientSecrets: ClientSecrets;
  readonly browsers: { readonly sessions: WebSessions; readonly cookies: SessionCookies };
  /** The company's people. null without a provider. */
  readonly people: OpenPeople;
  readonly authenticator: Authenticator;
  readonly drain: Drain;
  /** Their callers have the budgets of their accounts. Those of phase 3 have none. */
  readonly payments: Payments;
}

/** The HTTP server with its own pages. It does not listen before the last phase. */
interface HttpListener {
  readonly server: FastifyInstance;
  readonly web: WebPages;
  readonly catalog: Catalog;
  readonly trust: Trust;
  readonly ownOrigin: OwnOrigin;
}

/** The header of a 401, which names the gateway's resources. They are known once its server is there. */
interface Challenge {
  current: ChallengeFor;
}

/** The reference pages are mounted first, because they describe the routes that are added later. */
async function openServer(
  foundation: Foundation,
  observers: Observers,
  { payments }: Money,
  challenge: Challenge,
): Promise<HttpListener> {
  const { config, resources, offers, logger, onError } = foundation;
  const { metrics, refusals } = observers;
  const catalog = createCatalog();
  catalog.replace('config', offers);
  const trust = createTrust(config.trustedProxies);
  const ownOrigin = createOwnOrigin({
    publicUrl: config.publicUrl,
    names: configuredNames({ ...config, signInDomains: config.signIn.domains, bindHost: config.host }),
    onUnknownHost: (host) =>
      logger.warn(
        { host },
        'this gateway was visited at a host that it does not know, so its answers do not show that host: if it is your name for the gateway, set server.public_url',
      ),
  });
  const server = createServer({
    trust,
    limits: config.limits,
    ownOrigin,
    onBodyRefused: metrics.bodyRefused,
    onError,
    challenge: (request, error) => challenge.current(request, error),
    formOf: formOfErrors,
  });
  metrics.show({ bodies: server.requestBodies });
  resources.defer(() => server.close());
  await allowPages(server, config.corsOrigins);
  countAnswers(server, metrics);
  refusals.watch(server);
  await referenceRoutes(server, {
    version: VERSION,
    payable: payments.open,
    chatWires: CHAT_WIRES,
    exampleModel: () =>
      catalog.offers('model').find(({ model }) => model?.outputModalities.includes('text'))?.service ?? null,
    publicUrl: config.publicUrl,
    ownOrigin,
    marketplaceUrl: config.marketplaceUrl,
    dashboardUrl: config.dashboardUrl,
    count: (kind) => new Set(catalog.offers(kind).map(({ service }) => service)).size,
  });
  const web = addWebPages(server, {
    version: readBuild(),
    mode: config.mode,
    publicUrl: config.publicUrl,
    ownOrigin,
    elsewhere: { '/marketplace': config.marketplaceUrl, '/dashboard': config.dashboardUrl },
    signInDomains: config.signIn.domains,
    analytics: config.analytics.public !== 'off',
    authorization: config.authorization.enabled,
    people: config.people.issuer === null ? null : config.people.name,
    catalog,
    onMissing: (reason) => logger.warn({ reason }, 'the web pages are missing, or older than their sources'),
  });
  resources.defer(() => web.close());
  return { server, web, catalog, trust, ownOrigin };
}

export async function openAccess(foundation: Foundation, observers: Observers, money: Money): Promise<Access> {
  const { config, database, identity, logger, outages, resources, now, elapsed } = foundation;
  const { ledger, payments } = money;
  const challenge: Challenge = { current: () => null };
  const http = await openServer(foundation, observers, money, challenge);
  const keys = createKeyStore(database, { now });
  const limits = createLimitsStore(database, { now });
  const states = createAccountStates(database, now);
  const providerKeys = createProviderKeys({ database, secret: identity.secrets('provider keys'), now });
  const members = createMemberStore(database, { keys, limits, now });
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: elapsed });
  const signIn = await createSignIn({ ...config.signIn, chains: config.chains, attempts, now, elapsed });
  const nonces = createNonces({ secret: identity.accepted('sign-in nonces'), database, now });
  const onError = (error: unknown) =>
    outages.failed('OAuth issuer', { err: error }, 'the keys of the OAuth issuer could not be fetched');
  const authorizationState = config.authorization.enabled ? createStateStore(database, now) : null;
  const own = authorizationState && {
    issuer: () => originOf(ownUrlOf(config, http.server)),
    find: createTokenLookup(authorizationState),
    useOnce: nonces.useOnce,
  };
  const oauth = await createProtectedResource({
    config,
    ownOrigin: http.ownOrigin,
    own,
    attempts,
    now,
    elapsed,
    onError,
  });
  if (oauth.accessTokens !== null || own !== null) challenge.current = oauth.challengeFor;
  if (oauth.warning !== null) logger.warn(oauth.warning);
  const sessions = createWebSessions(database, { times: config.sessions, now });
  const browsers = { sessions, cookies: createSessionCookies(config.publicUrl) };
  const runTokens = createRunTokens({ secret: identity.accepted('run tokens'), now });
  const clientSecrets = createClientSecrets({ secret: identity.accepted('client secrets'), now });
  const authenticator = createAuthenticator({
    keys,
    limits,
    states,
    members,
    playgroundKeys: keys,
    signIn,
    attempts,
    accessTokens: oauth.accessTokens,
    ownTokens: oauth.ownTokens,
    browsers,
    runTokens,
    async findRun(parent) {
      const lock = await ledger.find(parent);
      if (lock?.state !== 'held') return null;
      // The topmost lock holds the money, and its budgets count all calls below it.
      let top = lock;
      while (top.parent !== null) {
        const above = await ledger.find(top.parent);
        if (above === null) break;
        top = above;
      }
      return { tags: tagsOfLock(top.lockDetail) };
    },
    acceptDevelopmentKeys: config.mode === 'development',
    anonymous: payments.open,
    now,
  });
  resources.defer(() => authenticator.close());
  return {
    http,
    keys,
    limits,
    states,
    members,
    providerKeys,
    signIn,
    nonces,
    oauth,
    authorizationState,
    runTokens,
    clientSecrets,
    browsers,
    people: openPeople(foundation, { sessions, keys, members, limits }),
    authenticator,
    drain: createDrain(authenticator.authenticate),
    payments: payersWithBudgets(payments, authenticator.withBudgets),
  };
}
