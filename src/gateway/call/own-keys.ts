import { type MeterRates, type MicroUsd, type Price, priceId, type Rates, type ServiceTiers } from '#billing/amounts';
import { mayUseProviderKeys, type OwnKeys, type ProviderKeys } from '#accounts';
import { withOwnKey, type DirectEndpoint, type Offer } from '#catalog';
import type { CallRequest, Candidate } from './call.ts';

/** Calls with the consumer's own key at a provider. */
export interface OwnKeyCalls {
  readonly keys: ProviderKeys;
  /** The part of the usual price that such a call costs, in basis points. All of it is the operator's. */
  readonly bps: number;
}

/** The whole charge is the operator's fee, because the provider charges the consumer. */
const ALL_BPS = 10_000;
const BPS = 10_000n;

/**
 * The keys that a request may use at these offers; null for none. A promise if they have to be read from the database.
 */
export function ownKeysFor(
  calls: OwnKeyCalls | undefined,
  { caller, free, primitive }: CallRequest,
  offers: readonly Offer[],
): OwnKeys | null | Promise<OwnKeys | null> {
  if (calls === undefined || primitive !== 'model' || free || !mayUseProviderKeys(caller)) return null;
  return offers.some(takesOwnKeys) ? calls.keys.keysOf(caller.account) : null;
}

const takesOwnKeys = ({ endpoint }: Offer): boolean => endpoint.kind === 'direct' && endpoint.ownKeys === true;

/** The place of an offer with the caller's own key; null without one. */
export function ownEndpoint({ endpoint, provider }: Offer, keys: OwnKeys | null): DirectEndpoint | null {
  if (keys === null || endpoint.kind !== 'direct' || endpoint.ownKeys !== true) return null;
  const key = keys.find(provider.id, endpoint.baseUrl);
  return key === null ? null : withOwnKey(endpoint, key);
}

/** The part of the usual price that is charged, and who gets it. */
export function atOwnKey(
  { offer, price, serviceTiers }: Pick<Candidate, 'offer' | 'price' | 'serviceTiers'>,
  endpoint: DirectEndpoint,
  bps: number,
): Pick<Candidate, 'price' | 'serviceTiers' | 'ownKey'> {
  const part = (whole: Price): Price => partOf(offer, whole, bps);
  const tiers: ServiceTiers | undefined =
    serviceTiers &&
    Object.fromEntries(Object.entries(serviceTiers).map(([name, whole]) => [name, part(whole)] as const));
  return { price: part(price), serviceTiers: tiers, ownKey: { endpoint, feeBps: ALL_BPS } };
}

const parts = new WeakMap<Price, { readonly bps: number; readonly part: Price }>();

function partOf({ provider, service }: Offer, whole: Price, bps: number): Price {
  const known = parts.get(whole);
  if (known?.bps === bps) return known.part;
  const { tiers, ...base } = whole.rates;
  const rates: Rates = {
    ...scaled(base, bps),
    ...(tiers === undefined ? {} : { tiers: tiers.map(({ above, rates: at }) => ({ above, rates: scaled(at, bps) })) }),
  };
  const part = { id: priceId(provider.id, ownKeyService(service), rates), rates };
  parts.set(whole, { bps, part });
  return part;
}

/** The name under which these prices are stored, apart from those that the provider asks. */
export const ownKeyService = (service: string): string => `own-key ${service}`;

const scaled = (rates: MeterRates, bps: number): MeterRates =>
  Object.fromEntries(
    Object.entries(rates).map(([meter, rate]: [string, MicroUsd]) => [meter, (rate * BigInt(bps) + BPS - 1n) / BPS]),
  );
