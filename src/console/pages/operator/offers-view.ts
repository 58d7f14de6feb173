import { findAttempts, findOfferSums, findPriceTimes, type ConsoleRange } from '#analytics';
import { OPERATOR } from '#billing';
import { costAtMost, formatUsd, type MicroUsd, type Rates, ratesToUsd } from '#billing/amounts';
import { PRIMITIVES } from '#config';
import { isOfKind, KINDS_OF_MODELS } from '#config/model-kinds';
import { type Catalog, type HealthSources, isOwn, type Offer, pricingSchema, viewHealth, viewPrice } from '#catalog';
import type { GatewayReports, LastFailures, ReportedOutage } from '#observe';
import type { Database } from '#store';
import { micro } from '../account/generation-view.ts';
import { objectOf, titled } from '../route-schemas.ts';
import { type HealthOfOperator, outagesElsewhere, statusProperties, viewStatus } from './offer-status.ts';
import { addSums, NO_SUMS, type SumsWithOwn, sumsSchema, viewSumsWithOwn, withOwn } from './sums-view.ts';

/* Offers as the operator sees them: health with its cause, price and cost, and what they earned in a range. */

export interface OffersDeps extends HealthSources {
  readonly health: HealthOfOperator;
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly lastFailures: Pick<LastFailures, 'newestOf'>;
  readonly gateways: Pick<GatewayReports, 'all'>;
  readonly database: Pick<Database, 'snapshot'>;
  readonly now: () => number;
}

const time = (description: string) => ({ type: ['string', 'null'], description });
const count = (description: string) => ({ type: 'integer', description });

export const offerSchema = titled(
  'OperatorOffer',
  objectOf({
    primitive: { type: 'string', enum: PRIMITIVES },
    service: { type: 'string' },
    provider: {
      type: ['string', 'null'],
      description: 'Public key of the provider; null for calls that nobody served.',
    },
    provider_name: { type: ['string', 'null'] },
    own: { type: 'boolean', description: "Whether it is of the operator's own file." },
    upstream_model: { type: ['string', 'null'], description: 'Name of the model at the vendor, of an own model.' },
    ...statusProperties,
    worked_at: time('When a call succeeded last, as the process that answers saw it since its start.'),
    uptime_last_1h: { type: ['number', 'null'], description: 'Share of attempts of the last hour that did not fail.' },
    pricing: { ...pricingSchema, type: ['object', 'null'], description: 'null if it is not offered now.' },
    price_since: time('When this price was stored first: its age. null before the first call.'),
    cost: {
      type: ['object', 'null'],
      additionalProperties: { type: 'number' },
      description: 'USD that the vendor charges, by meter and as in `pricing`; null if unknown.',
    },
    attempts: {
      ...objectOf({ succeeded: count('Attempts that succeeded.'), failed: count('Attempts that failed.') }),
      description: 'Requests to the provider on the UTC days of the range. A call may have several.',
    },
    sums: sumsSchema,
    test_micro_usdc: {
      type: ['integer', 'null'],
      description: 'Micro-USD that a test call costs at most; null if it cannot be tested so: only chat models can.',
    },
  }),
);

/** The most that a test call uses: a short question, and an answer of a few words. */
const TEST_USE = { prompt: 200n, completion: 64n } as const;

/** The most that a test call costs at an offer. null for an offer that takes no chat. */
export function testCostOf({ primitive, model, price }: Offer): MicroUsd | null {
  if (primitive !== 'model' || model === null || KINDS_OF_MODELS.some(([kind]) => isOfKind(model, kind))) return null;
  return costAtMost(price.rates, TEST_USE) + (price.rates.call ?? 0n) / 1_000_000n;
}

/**
 * All offers of the catalogue and those that had calls in the range, the most money first. `provider`: only those of
 * the provider with this id.
 */
export async function findOffers(deps: OffersDeps, range: ConsoleRange, provider: string | null = null) {
  const now = deps.now();
  const elsewhere = outagesElsewhere(await deps.gateways.all());
  const offers = deps.catalog.offers().filter((offer) => provider === null || offer.provider.id === provider);
  const own = new Set(deps.catalog.offers().flatMap((offer) => (isOwn(offer) ? [offer.provider.id] : [])));
  const { rows, attempts, prices } = await deps.database.snapshot(OPERATOR, async (query) => ({
    rows: await findOfferSums(query, range, now),
    attempts: await findAttempts(query, range, now),
    prices: await findPriceTimes(
      query,
      offers.map(({ price }) => price.id),
    ),
  }));
  // A call that nobody served has failed at the only offer of its service, if there is only one.
  const only = new Map<string, string | null>();
  for (const {
    primitive,
    service,
    provider: { id },
  } of deps.catalog.offers()) {
    const name = `${primitive} ${service}`;
    only.set(name, only.has(name) ? null : id);
  }
  const sums = new Map<string, SumsWithOwn>();
  for (const row of withOwn(rows, own)) {
    const server = row.provider || (only.get(`${row.primitive} ${row.service}`) ?? '');
    if (provider !== null && server !== provider) continue;
    const key = keyOf(row.primitive, row.service, server);
    sums.set(key, addSums(sums.get(key) ?? NO_SUMS, row));
  }
  const seen = new Set<string>();
  const current = offers.map((offer) => {
    const key = keyOf(offer.primitive, offer.service, offer.provider.id);
    seen.add(key);
    return viewOffer(offer, deps, {
      outages: elsewhere.get(offer.id) ?? [],
      sums: sums.get(key) ?? NO_SUMS,
      attempts: attempts.get(offer.id) ?? NO_ATTEMPTS,
      priceSince: prices.get(offer.price.id) ?? null,
    });
  });
  const former = [...sums].flatMap(([key, each]) => (seen.has(key) ? [] : [viewFormer(key, each, own)]));
  const callsOf = ({ sums: each }: { readonly sums: ReturnType<typeof viewSumsWithOwn> }) =>
    each.requests + each.failed;
  return [...current, ...former].sort(
    (a, b) => b.sums.charged_micro_usdc - a.sums.charged_micro_usdc || callsOf(b) - callsOf(a),
  );
}

const NO_ATTEMPTS = { successes: 0, failures: 0 } as const;
const SEPARATOR = '\n';
const keyOf = (primitive: string, service: string, provider: string): string =>
  [primitive, service, provider].join(SEPARATOR);
const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

interface OfferFacts {
  /** Of other processes. */
  readonly outages: readonly ReportedOutage[];
  readonly sums: SumsWithOwn;
  readonly attempts: { readonly successes: number; readonly failures: number };
  readonly priceSince: number | null;
}

function viewOffer(offer: Offer, deps: OffersDeps, { outages, sums, attempts, priceSince }: OfferFacts) {
  const { uptime_last_1h } = viewHealth(offer, deps);
  const cost: Rates | null = (offer.endpoint.kind === 'direct' ? offer.endpoint.cost?.rates : undefined) ?? null;
  const test = testCostOf(offer);
  return {
    primitive: offer.primitive,
    service: offer.service,
    provider: offer.provider.id,
    provider_name: offer.provider.name,
    own: isOwn(offer),
    upstream_model: isOwn(offer) ? (offer.model?.upstreamModel ?? null) : null,
    ...viewStatus(offer, deps, outages),
    worked_at: iso(deps.health.evidence(offer).workedAt),
    uptime_last_1h,
    pricing: viewPrice(offer),
    price_since: iso(priceSince),
    cost: cost === null ? null : ratesToUsd(cost),
    attempts: { succeeded: attempts.successes, failed: attempts.failures },
    sums: viewSumsWithOwn(sums),
    test_micro_usdc: test === null ? null : Number(test),
  };
}

/** An offer that had calls and is gone, or the calls that nobody served. */
function viewFormer(key: string, sums: SumsWithOwn, own: ReadonlySet<string>) {
  const [primitive = '', service = '', provider = ''] = key.split(SEPARATOR);
  return {
    primitive,
    service,
    provider: provider || null,
    provider_name: null,
    own: own.has(provider),
    upstream_model: null,
    status: null,
    status_since: null,
    status_reason: null,
    status_call: null,
    failing_accounts: [],
    worked_at: null,
    uptime_last_1h: null,
    pricing: null,
    price_since: null,
    cost: null,
    attempts: { succeeded: 0, failed: 0 },
    sums: viewSumsWithOwn(sums),
    test_micro_usdc: null,
  };
}

export const testSchema = titled(
  'TestCall',
  objectOf({
    ok: { type: 'boolean', description: 'Whether the provider answered.' },
    call: { type: ['string', 'null'], description: 'Id of the call; null if none was made.' },
    answer: { type: ['string', 'null'], description: 'The first words of the answer.' },
    error: { type: ['string', 'null'], description: 'Why it failed.' },
    error_code: { type: ['string', 'null'] },
    duration_ms: { type: 'integer' },
    cost_micro_usdc: micro,
    cost_usd: { type: 'string' },
  }),
);

export const viewCost = (cost: MicroUsd) => ({ cost_micro_usdc: Number(cost), cost_usd: formatUsd(cost) });
