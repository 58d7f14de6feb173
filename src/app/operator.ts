import type { FastifyPluginAsync } from 'fastify';
import type { Database } from '#store';
import {
  accountTotals,
  findLocks,
  findTransfer,
  type AuditReport,
  type createReceiptSigner,
  type Ledger,
} from '#billing';
import type { Config } from '#config';
import type { Catalog, Payments, Pipeline } from '#gateway';
import {
  createAdminGate,
  createConsumerStore,
  type Attempts,
  type CardKey,
  type createNonces,
  type Identity,
  type KeyStore,
  type SignIn,
} from '#auth';
import type { Registry } from '#network';
import { createDatabaseCheck, healthRoutes, metricsRoutes, type Logger, type Metrics } from '#observe';
import {
  accountRoutes,
  createKeyUsage,
  adminFundsRoutes,
  adminRoutes,
  auditFunds,
  auditRoutes,
  fundsRoutes,
  type Funds,
} from '#pages';
import type { PastReceipts } from './receipts.ts';

export interface OperatorRoutesDeps {
  readonly config: Pick<Config, 'adminKey' | 'adminNetworks' | 'chains' | 'publicUrl' | 'metrics'>;
  readonly database: Database;
  readonly registry: Pick<Registry, 'renew'>;
  readonly attempts: Attempts;
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly logger: Logger;
  readonly ledger: Ledger;
  readonly keys: KeyStore;
  readonly nonces: ReturnType<typeof createNonces>;
  readonly receipts: ReturnType<typeof createReceiptSigner>;
  readonly pastReceipts: PastReceipts;
  readonly cardKey: Pick<CardKey, 'jwk'>;
  readonly admit: Pipeline['admit'];
  readonly audit: () => Promise<AuditReport>;
  /** null on a gateway without chains. */
  readonly funds: Funds | null;
  readonly payments: Payments;
  readonly signIn: SignIn;
  readonly identity: Identity;
  /** The gateway is shutting down. */
  readonly draining: () => boolean;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly now: () => number;
}

/**
 * What is served beside the protocols: accounts and keys to their owners, everything to the operator, health and
 * figures to his machines.
 */
export function operatorRoutes(deps: OperatorRoutesDeps): FastifyPluginAsync {
  const {
    config,
    database,
    registry,
    ledger,
    keys,
    nonces,
    receipts,
    pastReceipts,
    cardKey,
    admit,
    audit,
    funds,
    draining,
    attempts,
    logger,
    metrics,
    now,
  } = deps;
  const ownNetworks = config.chains.map(({ network }) => network);
  const offers = (name: string) => deps.catalog.offers().some(({ service }) => service === name);
  const totals = (account: string) => accountTotals(database, account);
  const usage = createKeyUsage(database, now);

  return async (server) => {
    await server.register(
      accountRoutes({
        admit,
        keys,
        offers,
        nonces,
        ledger,
        usage,
        findLocks: (asked) => findLocks(database, asked),
        totals,
        receipt: pastReceipts.ofRecord,
        networks: ownNetworks,
        now,
      }),
      { prefix: '/api/v1' },
    );
    const { adminKey, adminNetworks: networks, publicUrl } = config;
    const onGuesses = (guesses: object) =>
      logger.warn(guesses, 'wrong admin keys; `failures` are those of this minute, from all addresses');
    const gate = createAdminGate({ adminKey, networks, attempts, onGuesses, now });
    await server.register(fundsRoutes({ ...deps, publicUrl, networks: ownNetworks }), { prefix: '/api/v1' });
    const consumers = createConsumerStore(database, { now });
    const admin = adminRoutes({
      gate,
      networks: ownNetworks,
      consumers,
      keys,
      offers,
      ledger,
      usage,
      totals,
      findTransfer: (id) => findTransfer(database, id),
      now,
    });
    await server.register(admin, { prefix: '/admin/v1' });
    await server.register(auditRoutes({ gate, audit, auditChains: () => auditFunds(funds, ledger) }), {
      prefix: '/admin/v1',
    });
    await server.register(adminFundsRoutes({ gate, contractNetworks: ownNetworks, consumers, funds, ledger }), {
      prefix: '/admin/v1',
    });
    const checkDatabase = createDatabaseCheck({
      write: () => registry.renew(),
      onChange: (works, error) =>
        works
          ? logger.info('the database can be written to again')
          : logger.error({ err: error }, 'the database cannot be written to: calls are refused'),
    });
    const ready = async () => {
      if (draining()) return { ready: false, checks: { gateway: 'is shutting down' } };
      const state = await checkDatabase();
      return { ready: state === 'ok', checks: { gateway: 'ok', database: state } };
    };
    await server.register(healthRoutes({ ready }));
    await server.register(metricsRoutes({ metrics, access: config.metrics, gate }));
    const schema = {
      tags: ['Account'],
      security: [],
      summary: 'Show the keys that receipts and agent cards are signed with',
      description: 'A JSON Web Key set (RFC 7517).',
      response: {
        200: {
          description: 'The keys.',
          type: 'object',
          required: ['keys'],
          properties: {
            keys: {
              type: 'array',
              items: {
                type: 'object',
                required: ['kty', 'crv', 'kid', 'alg', 'use'],
                properties: Object.fromEntries(
                  ['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use'].map((name) => [name, { type: 'string' }]),
                ),
              },
            },
          },
        },
      },
    };
    server.get('/.well-known/jwks.json', { schema }, () => ({ keys: [...receipts.jwks().keys, cardKey.jwk] }));
  };
}
