import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import {
  findAccountSums,
  findAsOf,
  findAttempts,
  findOfferSums,
  findRestingMoney,
  findTimeSums,
  type RestingMoney,
} from '#analytics';
import type { AdminGate } from '#auth';
import { OPERATOR } from '#billing';
import type { ConsumerStore } from '#accounts';
import type { GatewayReports, ReportedGateway } from '#observe';
import type { Database } from '#store';
import { micro } from '../account/generation-view.ts';
import { ADMINISTRATION, dataOf, listOf, objectOf, titled } from '../route-schemas.ts';
import { type FailingDeps, failingProviders, failingSchema, viewFailing } from './failing-providers.ts';
import { alertsSince, alertSchema, gatewaySchema, viewAlerts, viewGateway } from './gateways-view.ts';
import {
  addSums,
  failuresSchema,
  groupSums,
  NO_SUMS,
  rangeProperties,
  type RangeQuery,
  rangeQuerySchema,
  sumsProperties,
  sumsSchema,
  viewConsoleRange,
  viewConsoleSums,
  viewFailures,
  viewSumsWithOwn,
  withOwn,
} from './sums-view.ts';

interface OverviewDeps extends FailingDeps {
  readonly gate: AdminGate;
  readonly database: Pick<Database, 'snapshot' | 'query'>;
  readonly consumers: Pick<ConsumerStore, 'find'>;
  /** Names of providers by their ids, of those that are known. */
  readonly providerNames: () => Promise<ReadonlyMap<string, string>>;
  /** Ids of the providers of the operator's own file. */
  readonly ownProviders: () => ReadonlySet<string>;
  readonly gateways: Pick<GatewayReports, 'all'>;
  readonly now: () => number;
}

const TOP = 10;

const moneySchema = titled(
  'RestingMoney',
  objectOf({
    deposits_micro_usdc: { ...micro, description: 'Micro-USD that accounts can spend.' },
    locked_micro_usdc: { ...micro, description: 'Micro-USD that running calls have locked.' },
    owed_to_providers_micro_usdc: {
      ...micro,
      description: "Micro-USD: earnings of providers that are not the operator's.",
    },
    operator_micro_usdc: { ...micro, description: "Micro-USD: fees, and earnings of the operator's own providers." },
    suspense_micro_usdc: { ...micro, description: 'Micro-USD: deposits from unknown wallets.' },
    grants_micro_usdc: {
      ...micro,
      description: 'Micro-USD: credit that the operator granted, less what it took back, paid out or put on chains.',
    },
  }),
);

const customer = titled(
  'CustomerSums',
  objectOf({
    account: { type: 'string' },
    label: { type: 'string' },
    requests: sumsProperties.requests,
    failed: sumsProperties.failed,
    charged_micro_usdc: sumsProperties.charged_micro_usdc,
    fee_micro_usdc: sumsProperties.fee_micro_usdc,
  }),
);

const overviewSchema = titled(
  'Overview',
  objectOf({
    ...rangeProperties,
    totals: sumsSchema,
    accounts: { type: 'integer', description: 'Accounts that called.' },
    by_time: {
      type: 'array',
      description: 'Each hour of 24 hours, or each day, in order.',
      items: objectOf({ at: { type: 'string', description: 'Its beginning.' }, ...sumsProperties }),
    },
    failures: failuresSchema,
    customers: { type: 'array', description: 'The accounts that were charged most, at most 10.', items: customer },
    services: {
      type: 'array',
      description: 'The services with the most money, at most 10.',
      items: objectOf({ primitive: { type: 'string' }, service: { type: 'string' }, ...sumsSchema.properties }),
    },
    providers: {
      type: 'array',
      description:
        'First the providers whose attempts all failed, then those with the most money, at most 10. The sums of calls that nobody served are of none.',
      items: objectOf({
        provider: { type: 'string', description: 'Public key' },
        name: { type: ['string', 'null'] },
        own: { type: 'boolean', description: "Whether it is of the operator's own file." },
        failing: failingSchema,
        ...sumsSchema.properties,
      }),
    },
    money: moneySchema,
    alerts: {
      type: 'array',
      description:
        'What the gateways warned of in the last day, the newest first, as far as they remember it: see `alerts_since`.',
      items: alertSchema,
    },
    alerts_since: {
      type: ['string', 'null'],
      description:
        'Since when all alerts are known: the last day, or the start of the gateway that started last, because a restart forgets them. null without a gateway.',
    },
    gateways: { type: 'array', items: gatewaySchema },
  }),
);

/** The home of the operator's console, and the state of each gateway. Register it under `/admin/v1`. */
export const overviewRoutes =
  (deps: OverviewDeps): FastifyPluginAsync =>
  async (app) => {
    app.addHook('onRequest', deps.gate);
    addOverview(app, deps);
    addGateways(app, deps);
  };

function addOverview(app: FastifyInstance, deps: OverviewDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Show the state of the whole gateway',
    operationId: 'showOverview',
    description:
      'Volume, margin and failures in a range, who called and who served most, whose money rests in the ledger, the alerts of the last day, and all gateways of the database. The sums follow the calls within seconds. They have the calls of users, not those of the gateway itself.',
    querystring: rangeQuerySchema,
    response: { 200: dataOf(overviewSchema) },
  };
  app.get<{ Querystring: RangeQuery }>('/overview', { schema }, async ({ query: { range } }) => {
    const now = deps.now();
    const [own, names, gateways] = [deps.ownProviders(), await deps.providerNames(), await deps.gateways.all()];
    const { rows, times, callers, attempts, asOf } = await deps.database.snapshot(OPERATOR, async (query) => ({
      rows: await findOfferSums(query, range, now),
      times: await findTimeSums(query, range, now),
      callers: await findAccountSums(query, range, { now, limit: TOP }),
      attempts: await findAttempts(query, range, now),
      asOf: await findAsOf(query),
    }));
    const money = await findRestingMoney(deps.database.query, [...own]);
    const since = alertsSince(gateways, now);
    const sums = withOwn(rows, own);
    const services = groupSums(sums, ({ primitive, service }) => `${primitive}/${service}`);
    const served = groupSums(sums, ({ provider }) => provider).filter(([id]) => id !== '');
    const isServing = new Set(served.flatMap(([id, { requests }]) => (requests > 0 ? [id] : [])));
    const failing = failingProviders(deps.offers(), attempts).filter(({ provider }) => !isServing.has(provider));
    const failures = new Map(failing.map((each) => [each.provider, each]));
    const providers = [
      ...failing.map(({ provider }) => [provider, NO_SUMS] as const),
      ...served.filter(([id]) => !failures.has(id)),
    ];
    return {
      data: {
        ...viewConsoleRange(range, { now, asOf }),
        totals: viewSumsWithOwn(sums.reduce(addSums, NO_SUMS)),
        accounts: callers.accounts,
        by_time: times.map(({ atMs, ...sums }) => ({ at: new Date(atMs).toISOString(), ...viewConsoleSums(sums) })),
        failures: viewFailures(rows),
        customers: await Promise.all(
          callers.top.map(async ({ account, requests, failed, charged, fee }) => ({
            account,
            label: (await deps.consumers.find(account))?.label ?? '',
            requests,
            failed,
            charged_micro_usdc: Number(charged),
            fee_micro_usdc: Number(fee),
          })),
        ),
        services: services.slice(0, TOP).map(([name, each]) => {
          const slash = name.indexOf('/');
          return { primitive: name.slice(0, slash), service: name.slice(slash + 1), ...viewSumsWithOwn(each) };
        }),
        providers: providers.slice(0, TOP).map(([provider, each]) => {
          const failed = failures.get(provider);
          return {
            provider,
            name: names.get(provider) ?? failed?.name ?? null,
            own: own.has(provider),
            failing: failed === undefined ? null : viewFailing(failed, deps.lastFailures),
            ...viewSumsWithOwn(each),
          };
        }),
        money: viewMoney(money),
        alerts: viewAlerts(gateways),
        alerts_since: since === null ? null : new Date(since).toISOString(),
        gateways: gateways.map(viewGateway),
      },
    };
  });
}

const viewMoney = (money: RestingMoney) => ({
  deposits_micro_usdc: Number(money.deposits),
  locked_micro_usdc: Number(money.locked),
  owed_to_providers_micro_usdc: Number(money.owed),
  operator_micro_usdc: Number(money.operator),
  suspense_micro_usdc: Number(money.suspense),
  grants_micro_usdc: Number(money.grants),
});

function addGateways(app: FastifyInstance, { gateways }: OverviewDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'List the gateways',
    operationId: 'listGateways',
    description:
      'The processes of all gateways of this database, with their versions, what they check, and what they warned of in the last day. Each reports every half minute. One that was stopped in order is removed at once, and one that does not report, after a day.',
    response: { 200: listOf(gatewaySchema) },
  };
  app.get('/gateways', { schema }, async () => ({
    data: (await gateways.all()).map((gateway: ReportedGateway) => viewGateway(gateway)),
  }));
}
