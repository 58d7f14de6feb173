import type { FastifyInstance } from 'fastify';
import { configuredNames, createOwnOrigin, createTrust } from '#security';
import { allowPages, createServer, createDrain } from '#http';
import { createCatalog } from '#catalog';
import type { Payments } from '#payments';
import { countAnswers } from '#observe';
import { anthropicForm, CHAT_WIRES, geminiForm } from '#openai';
import { addWebPages, referenceRoutes } from '#pages';
import { createAccountStates, createLimitsStore, createMemberStore, createProviderKeys } from '#accounts';
import {
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
} from '#auth';
import { createStateStore, createTokenLookup } from '#authorization';
import { VERSION } from '../../foundation/version.ts';
import type { PhaseParts } from './foundation.ts';
import type { Money } from './money.ts';

type HttpListener = PhaseParts<typeof openServer>;

/**
 * The HTTP server, with the reference pages and the web pages. It does not listen yet. The reference pages are mounted
 * first, because they describe the routes that are added later.
 */
export async function openServer(money: Money) {
  const { config, opened, offers, payments, metrics, refusals, logger, onError } = money;
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
    challenge: (request, error) => money.late.challenge(request, error),
    formOf: (request) => anthropicForm(request) ?? geminiForm(request),
  });
  money.late.bodies = server.requestBodies;
  opened.defer(() => server.close());
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
    version: VERSION,
    mode: config.mode,
    publicUrl: config.publicUrl,
    ownOrigin,
    elsewhere: { '/marketplace': config.marketplaceUrl, '/dashboard': config.dashboardUrl },
    signInDomains: config.signIn.domains,
    analytics: config.analytics.public !== 'off',
    authorization: config.authorization.enabled,
    catalog,
    onMissing: (reason) => logger.warn({ reason }, 'there are no web pages'),
  });
  opened.defer(() => web.close());
  return { ...money, catalog, trust, server, web, ownOrigin };
}

export type Access = PhaseParts<typeof openAccess>;

/** Authentication by API keys, wallets, access tokens, sessions and run tokens. */
export async function openAccess(listener: HttpListener) {
  const { config, database, ledger, identity, logger, outages, payments, ownOrigin, opened, now, elapsed, late } =
    listener;
  const keys = createKeyStore(database, { now });
  const limits = createLimitsStore(database, { now });
  const states = createAccountStates(database, now);
  const providerKeys = createProviderKeys({ database, secret: identity.secret('provider keys'), now });
  const members = createMemberStore(database, { keys, limits, now });
  const attempts = createAttempts({ perMinute: config.signIn.failuresPerMinute, now: elapsed });
  const signIn = await createSignIn({ ...config.signIn, chains: config.chains, attempts, now, elapsed });
  const nonces = createNonces({ secret: identity.secret('sign-in nonces'), database, now });
  const onError = (error: unknown) =>
    outages.failed('OAuth issuer', { err: error }, 'the keys of the OAuth issuer could not be fetched');
  const authorizationState = config.authorization.enabled ? createStateStore(database, now) : null;
  const own = authorizationState && {
    issuer: () => originOf(ownUrlOf(listener)),
    find: createTokenLookup(authorizationState),
    useOnce: nonces.useOnce,
  };
  const oauth = await createProtectedResource({ config, ownOrigin, own, attempts, now, elapsed, onError });
  if (oauth.accessTokens !== null || own !== null) late.challenge = oauth.challengeFor;
  if (oauth.warning !== null) logger.warn(oauth.warning);
  const sessions = createWebSessions(database, { times: config.sessions, now });
  const browsers = { sessions, cookies: createSessionCookies(config.publicUrl) };
  const runTokens = createRunTokens({ secret: identity.secret('run tokens'), now });
  const clientSecrets = createClientSecrets({ secret: identity.secret('client secrets'), now });
  const authenticator = createAuthenticator({
    keys,
    limits,
    states,
    members,
    signIn,
    attempts,
    accessTokens: oauth.accessTokens,
    ownTokens: oauth.ownTokens,
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
    providerKeys,
    attempts,
    signIn,
    nonces,
    oauth,
    authorizationState,
    runTokens,
    clientSecrets,
    browsers,
    authenticator,
    drain: createDrain(authenticator.authenticate),
  };
}

export const originOf = (url: string | null): string | null => url && new URL(url).origin;

/**
 * The public address of this gateway. null if it is not configured, or if a development gateway does not listen yet.
 */
export const ownUrlOf = ({ config, server }: Pick<HttpListener, 'config' | 'server'>): string | null =>
  config.publicUrl ?? (config.mode === 'development' ? listeningAt(server, '127.0.0.1') : null);

/** The server's origin at `host`, an address on which it listens. null before it listens. */
export function listeningAt({ server }: FastifyInstance, host: string): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return null;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
