import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import type { Payouts } from '#billing';
import type { AdminGate, Identity } from '#auth';
import { PROVIDER_ID_PATTERN } from '#accounts/names';
import { type MicroUsd, formatUsd } from '#billing/amounts';
import { compare, type Offer } from '#catalog';
import { DOCUMENTED } from '#http';
import type { KnownProvider } from '#network';
import type { LastFailures } from '#observe';
import {
  failureSchema,
  payoutSchema,
  providerNamed,
  providerParams,
  viewFailure,
  viewPayout,
} from '../account/admin-provider-routes.ts';
import { ADMINISTRATION, dataOf, listOf, objectOf, titled } from '../route-schemas.ts';
import { findOffers, offerSchema, type OffersDeps, testCostOf, testSchema, viewCost } from './offers-view.ts';
import { type RangeQuery, rangeQuerySchema } from './sums-view.ts';

export interface TestCallEnd {
  readonly call: string | null;
  /** The first words of the answer; null for a call that failed. */
  readonly answer: string | null;
  readonly error: { readonly message: string; readonly code: string } | null;
  readonly cost: MicroUsd;
}

interface ServicesDeps extends OffersDeps {
  readonly gate: AdminGate;
  readonly identity: Pick<Identity, 'providerId'>;
  readonly lastFailures: Pick<LastFailures, 'newestOf' | 'all'>;
  readonly payouts: Pick<Payouts, 'list'>;
  readonly findProvider: (provider: string) => Promise<KnownProvider | null>;
  readonly earnings: (provider: string) => Promise<MicroUsd>;
  /** Makes one small call of the operator's own account at this offer, which costs at most `most`. */
  readonly testCall: (offer: Offer, most: MicroUsd) => Promise<TestCallEnd>;
}

/** The operator's pages of services and of one provider. Register it under `/admin/v1`. */
export const operatorServicesRoutes =
  (deps: ServicesDeps): FastifyPluginAsync =>
  async (app) => {
    app.addHook('onRequest', deps.gate);
    listServices(app, deps);
    testService(app, deps);
    showProvider(app, deps);
  };

function listServices(app: FastifyInstance, deps: ServicesDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'List the offers of services, with margin and health',
    operationId: 'listOperatorServices',
    description:
      'Each offer of each service: its health with the cause, price and its age, cost, and the calls, money and margin of a range. The offers with the most money first. Offers that had calls in the range and are gone have no `pricing`, and calls that nobody served no `provider`, unless their service has only one.',
    querystring: rangeQuerySchema,
    response: { 200: listOf(offerSchema) },
  };
  app.get<{ Querystring: RangeQuery }>('/services', { schema }, async ({ query: { range } }) => ({
    data: await findOffers(deps, range),
  }));
}

interface TestBody {
  readonly service: string;
  readonly provider?: string;
}

function testService(app: FastifyInstance, deps: ServicesDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Make a test call of a chat model',
    operationId: 'testService',
    description:
      "Makes one small real call, which is billed to the operator's own account `tollgate:local:operator` as any other call is. It costs at most `test_micro_usdc` of the offer. The answer is 200 also if the call failed: `error` says why.",
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['service'],
      examples: [{ service: 'acme/chat' }],
      properties: {
        service: { type: 'string', minLength: 1, maxLength: 256, description: 'Name of a chat model.' },
        provider: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: 'Public key of one of its providers. Without it the first one by name is called.',
          [DOCUMENTED]: { pattern: PROVIDER_ID_PATTERN },
        },
      },
    },
    response: { 200: dataOf(testSchema) },
  };
  app.post<{ Body: TestBody }>(
    '/services/test',
    { schema, config: { adminRole: 'credit' } },
    async ({ body: { service, provider } }) => {
      const offers = deps.catalog
        .offers()
        .filter((offer) => offer.service === service && offer.primitive === 'model')
        .filter((offer) => provider === undefined || offer.provider.id === provider)
        .sort((a, b) => compare(a.provider.name, b.provider.name));
      const [offer] = offers;
      if (offer === undefined)
        throw new GatewayError(
          'not_found',
          provider === undefined
            ? `No provider offers a model ${JSON.stringify(service)} now`
            : `The provider ${JSON.stringify(provider)} offers no model ${JSON.stringify(service)} now`,
          { param: provider === undefined ? 'service' : 'provider' },
        );
      const most = testCostOf(offer);
      if (most === null)
        throw new GatewayError('unprocessable', `${service} takes no chat: only chat models have a test call`, {
          param: 'service',
        });
      const begun = performance.now();
      const { call, answer, error, cost } = await deps.testCall(offer, most);
      return {
        data: {
          ok: error === null,
          call,
          answer,
          error: error?.message ?? null,
          error_code: error?.code ?? null,
          duration_ms: Math.round(performance.now() - begun),
          ...viewCost(cost),
        },
      };
    },
  );
}

const detailSchema = titled(
  'OperatorProvider',
  objectOf({
    provider: { type: 'string', description: 'Public key' },
    name: { type: ['string', 'null'] },
    own: { type: 'boolean', description: "Whether it is of the operator's own file." },
    account: { type: ['string', 'null'] },
    connected: { type: ['boolean', 'null'], description: 'null for a provider of the file, which does not dial in.' },
    left_at: { type: ['string', 'null'], description: 'When its proxy left; null while it is connected.' },
    registered_at: { type: ['string', 'null'] },
    banned: {
      type: ['object', 'null'],
      required: ['reason', 'at'],
      properties: { reason: { type: 'string' }, at: { type: 'string' } },
    },
    earnings_micro_usdc: { type: 'integer', description: 'What it has left to be paid' },
    earnings_usd: { type: 'string' },
    offers: { type: 'array', items: offerSchema },
    failures: {
      type: 'array',
      description: 'The newest 20 attempts that failed, as the process that answers saw them since its start.',
      items: failureSchema,
    },
    payouts: { type: 'array', description: 'The newest 20 that were booked.', items: payoutSchema },
  }),
);

const NEWEST = { offset: 0, limit: 20 };

function showProvider(app: FastifyInstance, deps: ServicesDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Show a provider to the operator',
    operationId: 'showProviderToOperator',
    description:
      'What it offers and how that goes, its last errors with the ids of their calls, its earnings, its payouts, and whether it is banned.',
    params: providerParams,
    querystring: rangeQuerySchema,
    response: { 200: dataOf(detailSchema) },
  };
  app.get<{ Params: { readonly id: string }; Querystring: RangeQuery }>(
    '/providers/:id',
    { schema },
    async ({ params, query: { range } }) => {
      const provider = providerNamed(params.id, deps);
      const [known, offers] = await Promise.all([deps.findProvider(provider), findOffers(deps, range, provider)]);
      const own = deps.catalog
        .offers()
        .find((offer) => offer.provider.id === provider && offer.endpoint.kind === 'direct');
      if (known === null && own === undefined && offers.length === 0)
        throw new GatewayError('not_found', 'No provider with this key or account was ever here', { param: 'id' });
      const [earnings, payouts] = await Promise.all([deps.earnings(provider), deps.payouts.list(provider, NEWEST)]);
      return {
        data: {
          provider,
          name: own?.provider.name ?? known?.name ?? null,
          own: own !== undefined,
          account: known?.account ?? null,
          connected: own === undefined ? (known?.isConnected ?? false) : null,
          left_at: iso(known?.isConnected === false ? known.leftAt : null),
          registered_at: iso(known?.registeredAt ?? null),
          banned: known?.ban ? { reason: known.ban.reason, at: iso(known.ban.at)! } : null,
          earnings_micro_usdc: Number(earnings),
          earnings_usd: formatUsd(earnings),
          offers,
          failures: deps.lastFailures.all(provider).slice(0, NEWEST.limit).map(viewFailure),
          payouts: payouts.map(viewPayout),
        },
      };
    },
  );
}

const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());
