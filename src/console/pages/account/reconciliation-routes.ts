import type { FastifyPluginAsync } from 'fastify';
import { dateOf, type CostOfOffer, DAY_MS, type OfferCalls, sumOfferCalls } from '#analytics';
import type { AdminGate } from '#auth';
import { archivedUntil, OPERATOR } from '#billing';
import { KNOWN_PROVIDER_NAMES, knownProviderAt, type KnownProviderName } from '#config/known-providers';
import { nearest } from '#config';
import { GatewayError } from '#errors';
import { DOCUMENTED } from '#http';
import { printable } from '#security';
import type { Database } from '#store';
import { dateRangeSchema, documentedDay, parseDayRange } from '../day-range.ts';
import { ADMINISTRATION, dataOf, objectOf } from '../route-schemas.ts';
import { addResultRoutes } from './reconciliation-results.ts';

export interface PaidOffer {
  readonly provider: string;
  readonly service: string;
  /** The base address of its API; '' for a package. */
  readonly baseUrl: string;
  readonly upstreamModel: string;
  /** The cost of the offer; null if it is unknown. */
  readonly cost: CostOfOffer | null;
}

interface ReconciliationDeps {
  readonly gate: AdminGate;
  readonly database: Pick<Database, 'query' | 'snapshot'>;
  readonly offers: () => readonly PaidOffer[];
  /** The `[[providers]]` of its file: their vendor, and the name of their provider. */
  readonly listed: readonly { readonly use: string; readonly provider: string }[];
  readonly now: () => number;
}

interface ReconciliationQuery {
  readonly vendor?: KnownProviderName;
  readonly provider?: string;
  readonly start_date: string;
  readonly end_date: string;
}

const count = (description: string) => ({ type: 'integer', description });
const micro = (description: string) => ({ type: 'integer', description: `Micro-USD: ${description}` });

const rowSchema = objectOf({
  date: { type: 'string', format: 'date', description: 'The UTC day on which the calls ended.' },
  model: { type: 'string', description: 'The name of the model at the vendor.' },
  service: { type: 'string' },
  provider: { type: 'string', description: 'Empty for calls that ended before a provider was known.' },
  offered: {
    type: 'boolean',
    description: 'Whether it is offered now. Otherwise `model` is the name without its prefix.',
  },
  requests: count('Calls that the vendor served.'),
  free: count('Of these, calls that were free here because their answer reported a failure or was empty.'),
  measured: count('Of these, calls that were cut before the vendor reported their use, so it was measured.'),
  claims: count('Of these, calls whose reported use was beyond what can be charged, so it was cut.'),
  refused: count('Attempts that the vendor answered with an error.'),
  broken: count('Attempts that broke off or took too long. The vendor may have billed them.'),
  aborted: count('Calls whose client left before an answer. The vendor may have billed them.'),
  own_keys: count("Calls with a consumer's own key. They are in no other figure."),
  prompt_tokens: count('With those of a cache.'),
  completion_tokens: count('With reasoning.'),
  cached_tokens: count('Part of the prompt.'),
  reasoning_tokens: count('Part of the completion.'),
  charged_micro_usdc: micro('what consumers were charged.'),
  fee_micro_usdc: micro("the operator's fee, a part of it."),
  cost_micro_usd: {
    type: ['integer', 'null'],
    description: 'Micro-USD: the cost by `cost` of the offer; null without one.',
  },
});

/** The operator's routes for the comparison with a vendor. Register it under `/admin/v1`. */
export function reconciliationRoutes(deps: ReconciliationDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', deps.gate);
    addResultRoutes(app, deps);
    const day = (which: string) => ({
      type: 'string',
      maxLength: 40,
      description: `${which} UTC day, \`YYYY-MM-DD\`. At most 366 days in all.`,
      [DOCUMENTED]: documentedDay,
    });
    const schema = {
      ...ADMINISTRATION,
      summary: 'Calls of a vendor',
      operationId: 'showCallsOfVendor',
      description:
        "The calls of models that a vendor has served for this gateway, by day and model, as `tollgate reconcile` compares them with the vendor's export. An offer belongs to a vendor if its `params.api_base` is an address of the vendor, or if it is of `[[providers]]` of this name.",
      querystring: {
        type: 'object',
        additionalProperties: false,
        required: ['start_date', 'end_date'],
        properties: {
          vendor: { type: 'string', enum: KNOWN_PROVIDER_NAMES, description: 'A vendor by its name in `use`.' },
          provider: {
            type: 'string',
            minLength: 1,
            maxLength: 64,
            description: 'Instead of the vendor: the name of a provider, of which all offers count.',
          },
          start_date: day('First'),
          end_date: day('Last'),
        },
      },
      response: {
        200: dataOf(
          objectOf({
            date_range: dateRangeSchema,
            archived_before: {
              type: ['string', 'null'],
              description: 'Calls before this day are in archives, and not in the rows. null without archives.',
            },
            providers: { type: 'array', items: { type: 'string' }, description: 'Providers whose offers count.' },
            rows: { type: 'array', items: rowSchema },
          }),
        ),
      },
    };
    app.get<{ Querystring: ReconciliationQuery }>('/reconciliation', { schema }, async ({ query }) => {
      if (query.vendor === undefined && query.provider === undefined)
        throw new GatewayError('invalid_request', 'Name a vendor, or with provider one of your own', {
          param: 'vendor',
        });
      const range = parseDayRange(query, deps.now());
      const offers = deps.offers();
      const find = offerFinder(query, offers, deps.listed);
      const archived = await archivedUntil(deps.database.query);
      const isKnown = query.provider === undefined || offers.some(({ provider }) => provider === query.provider);
      const rest = { first: Math.max(range.first, archived / DAY_MS), last: range.last };
      const sums =
        rest.first > rest.last
          ? []
          : await sumOfferCalls(
              deps.database,
              OPERATOR,
              rest,
              (provider, service) => find(provider, service)?.cost ?? null,
            );
      const rows = sums.flatMap((each) => {
        const offer = find(each.provider, each.service);
        return offer === null ? [] : [viewRow(each, offer)];
      });
      // One that is not offered any more is known by its calls.
      if (!isKnown && rows.length === 0) throw unknownProvider(query.provider, offers);
      return {
        data: {
          date_range: { start_date: dateOf(range.first), end_date: dateOf(range.last) },
          archived_before: archived === 0 ? null : dateOf(Math.floor(archived / DAY_MS)),
          providers: [...new Set(rows.map(({ provider }) => provider).filter((name) => name !== ''))].sort(),
          rows: rows.sort((a, b) => (a.date + a.model < b.date + b.model ? -1 : 1)),
        },
      };
    });
  };
}

interface FoundOffer {
  readonly model: string;
  readonly isOffered: boolean;
  readonly cost: CostOfOffer | null;
}

/** Finds the model at the vendor for a provider and a service of a record. It gives null for those of others. */
function offerFinder(
  { vendor, provider: providerName }: ReconciliationQuery,
  offers: readonly PaidOffer[],
  listed: ReconciliationDeps['listed'],
): (provider: string, service: string) => FoundOffer | null {
  const names = new Set(listed.filter(({ use }) => use === vendor).map(({ provider }) => provider));
  const isOf = ({ provider, baseUrl }: PaidOffer) =>
    providerName === undefined
      ? names.has(provider) || (vendor !== undefined && knownProviderAt(baseUrl) === vendor)
      : provider === providerName;
  const own = new Map<string, FoundOffer>();
  const others = new Set<string>();
  const byService = new Map<string, FoundOffer>();
  for (const offer of offers) {
    const key = `${offer.provider} ${offer.service}`;
    if (!isOf(offer)) others.add(key);
    else {
      names.add(offer.provider);
      const hit = { model: offer.upstreamModel, isOffered: true, cost: offer.cost };
      own.set(key, hit);
      byService.set(offer.service, hit);
    }
  }
  if (providerName !== undefined) names.add(providerName);
  return (provider, service) => {
    if (provider === '') return byService.get(service) ?? null;
    const key = `${provider} ${service}`;
    const hit = own.get(key);
    if (hit !== undefined) return hit;
    if (!names.has(provider) || others.has(key)) return null;
    // Not offered any more. The name usually has the prefix of its provider.
    return { model: service.replace(/^[^/]*\//, ''), isOffered: false, cost: null };
  };
}

function unknownProvider(name: string, offers: readonly PaidOffer[]): GatewayError {
  const known = [...new Set(offers.map(({ provider }) => provider))].sort();
  const same = known.find((one) => one.toLowerCase() === name.toLowerCase()) ?? nearest(name, known);
  const words = `provider: no model of this gateway is of ${printable(name, 64)}, and no call on these days was`;
  const hint = same === null ? '' : `; did you mean ${same}?`;
  return new GatewayError('invalid_request', `${words}${hint} Known are ${known.slice(0, 20).join(', ')}`, {
    param: 'provider',
  });
}

const viewRow = (sums: OfferCalls, { model, isOffered }: FoundOffer) => ({
  date: dateOf(sums.day),
  model,
  service: sums.service,
  provider: sums.provider,
  offered: isOffered,
  requests: sums.requests,
  free: sums.free,
  measured: sums.measured,
  claims: sums.claims,
  refused: sums.refused,
  broken: sums.broken,
  aborted: sums.aborted,
  own_keys: sums.ownKeys,
  prompt_tokens: sums.prompt,
  completion_tokens: sums.completion,
  cached_tokens: sums.cached,
  reasoning_tokens: sums.reasoning,
  charged_micro_usdc: Number(sums.charged),
  fee_micro_usdc: Number(sums.fee),
  cost_micro_usd: sums.cost === null ? null : Number(sums.cost),
});
