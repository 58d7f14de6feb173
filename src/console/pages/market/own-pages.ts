import type { FastifyPluginAsync } from 'fastify';
import { PRIMITIVES } from '#config';
import { type Caller, providerIdOf } from '#accounts';
import type { Pipeline } from '#call';
import {
  compare,
  flagsSchema,
  type HealthSources,
  leftOutSchemaOf,
  offerStatus,
  pricingSchema,
  raisedSchema,
  statusSchema,
  type ToolListings,
  viewLeftOut,
  viewPrice,
  viewRaise,
} from '#catalog';
import { callerCaip10 } from '#accounts/names';
import { requireAdmission, refuseRestricted, type KeyStore, type Identity } from '#auth';
import { offerOfTunnel, type PayoutRules, payoutTerms, type RegisteredService, type Registry } from '#network';
import type { LastFailures } from '#observe';
import { dateOf, type DayRange } from '#analytics';
import type { Payouts, Refunds } from '#billing';
import { type CallsQuery, type ListProviderCalls, providerCalls, providerCallsSchema } from './provider-calls.ts';
import { dateRangeSchema, type DayRangeQuery, dayRangeSchema, parseDayRange } from '../day-range.ts';
import type { Earnings, EarningsEntry, FindEarnings } from './earnings.ts';
import { pageSchema, type PageRange, listOf, objectOf, titled } from '../route-schemas.ts';
import { refundProperties, viewRefund } from '../account/call-tree.ts';
import { failedFields, payoutSchema, viewFailed, viewPayout } from '../account/admin-provider-routes.ts';

interface OwnPagesDeps extends HealthSources {
  readonly admit: Pipeline['admit'];
  readonly keys: Pick<KeyStore, 'find'>;
  readonly identity: Pick<Identity, 'providerId'>;
  readonly registry: Pick<Registry, 'banOf' | 'locate' | 'registration'>;
  readonly listings: Pick<ToolListings, 'leftOutOf'>;
  readonly lastFailures: Pick<LastFailures, 'failuresOf'>;
  readonly earnings: FindEarnings;
  readonly calls: ListProviderCalls;
  readonly payouts: Pick<Payouts, 'list'>;
  readonly refunds: Pick<Refunds, 'list'>;
  /** The chains over which this gateway pays, and what its operator says about payouts. */
  readonly payoutRules: () => PayoutRules;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
  readonly now: () => number;
}

const money = { type: 'integer', description: 'Micro-USD, net of the fee' } as const;
const requests = {
  type: 'integer',
  description: 'Calls that ended normally, including those that earned nothing',
} as const;
const primitive = { type: ['string', 'null'], enum: [...PRIMITIVES, null] } as const;
const ofCaller = {
  provider: { type: 'string', description: 'Public key that you are known by' },
  account: { type: 'string', description: 'CAIP-10' },
} as const;

const payoutTermsSchema = {
  title: 'PayoutTerms',
  description: 'Whether and how this gateway pays your earnings',
  ...objectOf({
    networks: { type: 'array', items: { type: 'string' }, description: 'Chains (CAIP-2) over which you can withdraw' },
    text: { type: ['string', 'null'], description: 'What the operator says about it' },
    summary: { type: 'string', description: 'All of it in a sentence or two' },
  }),
} as const;

const earningsProperties = {
  ...ofCaller,
  available_micro_usdc: { type: 'integer', description: 'On your earnings account now' },
  total_earned_micro_usdc: {
    type: 'integer',
    description: 'All-time earnings after the fee of the operator, including what was paid out',
  },
  payout_terms: payoutTermsSchema,
  range: dateRangeSchema,
  by_day: {
    type: 'array',
    description: 'Every UTC day of the range in order, those without a call too',
    items: objectOf({
      date: { type: 'string' },
      requests,
      earned_micro_usdc: money,
      services: {
        type: 'array',
        items: objectOf({
          service: { type: 'string' },
          primitive,
          requests,
          earned_micro_usdc: money,
          flags: {
            ...flagsSchema,
            description:
              'Calls whose reply broke a rule, by rule, such as `usage_missing`; those without usage earn nothing',
          },
        }),
      },
    }),
  },
} as const;

const lastFailuresSchema = {
  type: 'array',
  description: 'The newest 20 calls that failed at your service, as this gateway saw them since its start',
  items: {
    title: 'FailedAttempt',
    ...objectOf(failedFields),
  },
} as const;

const servicesProperties = {
  ...ofCaller,
  connected: {
    type: 'boolean',
    description: 'Your proxy is connected, to this gateway or to another one of the same router',
  },
  connected_since: { type: ['string', 'null'] },
  banned_because: { type: ['string', 'null'], description: "The operator's reason for a ban; null without one." },
  payout_terms: payoutTermsSchema,
  revision: { type: 'integer', description: 'Grows with every change of your services' },
  created_at: { type: ['string', 'null'], description: 'When you first registered' },
  updated_at: { type: ['string', 'null'], description: 'When you last registered' },
  services: {
    type: 'array',
    items: objectOf({
      name: { type: 'string' },
      display_name: { type: 'string' },
      description: { type: 'string' },
      primitive,
      pricing: pricingSchema,
      price_raised: raisedSchema,
      listed_since: { type: 'string', description: 'When you first registered it' },
      status: statusSchema,
      compliance: {
        type: 'number',
        description:
          '1 when the replies of the last hour were in order, towards 0 the more of them were flagged; your weight falls with its square',
      },
      last_hour: {
        description: 'Calls of the last hour',
        ...objectOf({
          requests: { type: 'integer' },
          failures: { type: 'integer' },
          flags: { type: 'integer', description: 'How often replies broke the rules' },
        }),
      },
      flags: { ...flagsSchema, description: 'How often replies broke the rules, by rule, ever' },
      last_failures: lastFailuresSchema,
      left_out: leftOutSchemaOf({}),
    }),
  },
} as const;

const refundSchema = titled(
  'RefundOfProvider',
  objectOf({ call: { type: 'string', description: 'Id of the call' }, ...refundProperties }),
);

const answer = (properties: Readonly<Record<string, object>>) => ({ 200: objectOf(properties) });

/**
 * The routes for a provider's own earnings and registered services. The credential decides which provider's pages they
 * are. Register it under `/api/v1`.
 */
export function ownPages(deps: OwnPagesDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit);
    const termsOf = ({ account }: Caller) => ({ payout_terms: payoutTerms(account, deps.payoutRules()) });
    const pageOf = (caller: Caller) => ({
      provider: providerIdOf(caller.account, deps.identity),
      account: callerCaip10(caller, deps.networks),
    });

    app.get<{ Querystring: DayRangeQuery }>(
      '/provider/earnings',
      {
        schema: {
          summary: 'Show what you earned',
          description:
            'By day and service, from the records of the ledger. For the wallet that signs in, or the account of the key. An account that never provided a service has earned 0. Not allowed for a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above.',
          tags: ['Providers'],
          querystring: dayRangeSchema,
          response: answer(earningsProperties),
        },
      },
      async (request) => {
        const range = parseDayRange(request.query, deps.now());
        const { caller } = admissionOf(request);
        await refuseRestricted(deps.keys, caller.key, 'see earnings');
        const you = pageOf(caller);
        return { ...you, ...termsOf(caller), ...viewEarnings(await deps.earnings(you.provider, range), range) };
      },
    );

    app.get<{ Querystring: CallsQuery }>('/provider/calls', { schema: providerCallsSchema }, async (request) => {
      const { caller } = admissionOf(request);
      await refuseRestricted(deps.keys, caller.key, 'see calls of its services');
      return providerCalls(deps.calls, pageOf(caller).provider, request.query);
    });

    app.get<{ Querystring: PageRange }>(
      '/provider/payouts',
      {
        schema: {
          summary: 'List what you were paid outside of the gateway',
          operationId: 'listOwnPayouts',
          description:
            'Payouts that the operator booked, for example bank transfers, the newest first. `/withdrawals` has those over chains. Not allowed for a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above.',
          tags: ['Providers'],
          querystring: pageSchema,
          response: { 200: listOf(payoutSchema) },
        },
      },
      async (request) => {
        const { caller } = admissionOf(request);
        await refuseRestricted(deps.keys, caller.key, 'see earnings');
        return { data: (await deps.payouts.list(pageOf(caller).provider, request.query)).map(viewPayout) };
      },
    );

    app.get<{ Querystring: PageRange }>(
      '/provider/refunds',
      {
        schema: {
          summary: 'List what was taken for refunds',
          operationId: 'listOwnRefunds',
          description:
            'Calls of your services that the operator refunded to their consumers, the newest first, with your share of each, which was taken from your earnings. Not allowed for a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above.',
          tags: ['Providers'],
          querystring: pageSchema,
          response: { 200: listOf(refundSchema) },
        },
      },
      async (request) => {
        const { caller } = admissionOf(request);
        await refuseRestricted(deps.keys, caller.key, 'see earnings');
        const refunds = await deps.refunds.list(pageOf(caller).provider, request.query);
        return { data: refunds.map((refund) => ({ call: refund.call, ...viewRefund(refund) })) };
      },
    );

    app.get(
      '/provider/services',
      {
        schema: {
          summary: 'Show your services',
          description:
            'What your proxy has registered, and how this gateway sees it. Empty for an account that never provided a service.',
          tags: ['Providers'],
          response: answer(servicesProperties),
        },
      },
      async (request) => {
        const { caller } = admissionOf(request);
        const you = pageOf(caller);
        const registration = await deps.registry.registration(you.provider);
        return {
          ...you,
          ...termsOf(caller),
          connected: Boolean(registration?.connected),
          connected_since: registration?.connected ? iso(registration.connected.since) : null,
          banned_because: deps.registry.banOf(you.provider)?.reason ?? null,
          revision: registration?.revision ?? 0,
          created_at: registration ? iso(registration.createdAt) : null,
          updated_at: registration ? iso(registration.updatedAt) : null,
          services: (registration?.services ?? []).map((registered) => {
            const view = viewService(registered, you.provider, deps);
            // The database knows earlier than this gateway's catalogue that a provider is away.
            return registration?.connected ? view : { ...view, status: 'away' };
          }),
        };
      },
    );
  };
}

function viewEarnings({ available, total, entries }: Earnings, { first, last }: DayRange) {
  const byDay = Map.groupBy(entries, ({ day }) => day);
  return {
    available_micro_usdc: Number(available),
    total_earned_micro_usdc: Number(total),
    range: { start_date: dateOf(first), end_date: dateOf(last) },
    by_day: Array.from({ length: last - first + 1 }, (_, index) =>
      viewDay(first + index, byDay.get(first + index) ?? []),
    ),
  };
}

function viewDay(day: number, entries: readonly EarningsEntry[]) {
  return {
    date: dateOf(day),
    requests: entries.reduce((sum, entry) => sum + entry.requests, 0),
    earned_micro_usdc: Number(entries.reduce((sum, { earned }) => sum + earned, 0n)),
    services: entries
      .toSorted((a, b) => compare(a.service, b.service) || compare(a.primitive ?? '', b.primitive ?? ''))
      .map((entry) => ({
        service: entry.service,
        primitive: entry.primitive,
        requests: entry.requests,
        earned_micro_usdc: Number(entry.earned),
        flags: entry.flags,
      })),
  };
}

function viewService(
  registered: RegisteredService,
  provider: string,
  { listings, lastFailures, ...healthSources }: HealthSources & Pick<OwnPagesDeps, 'lastFailures' | 'listings'>,
) {
  const { service, createdAt } = registered;
  // The catalogue has a registered service only while its provider is connected. So the offer is built here.
  const offer = offerOfTunnel(registered, provider);
  const { lastHour, flags } = healthSources.health.stats(offer);
  return {
    name: service.name,
    display_name: service.displayName,
    description: service.description,
    primitive: service.primitive,
    pricing: viewPrice(offer),
    price_raised: viewRaise(offer),
    listed_since: iso(createdAt),
    status: offerStatus(offer, healthSources),
    compliance: healthSources.health.compliance(offer),
    last_hour: lastHour,
    flags,
    last_failures: lastFailures.failuresOf(offer).map(viewFailed),
    left_out: listings.leftOutOf(offer).map(viewLeftOut),
  };
}

const iso = (time: number) => new Date(time).toISOString();
