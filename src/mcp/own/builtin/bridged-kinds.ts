import type { Primitive } from '#config';
import { type Catalog, type Offer, type TargetAdapter, type TargetAdapters, viewToolCallPrice } from '#gateway';

/** Primitives that a tool call can ask: agents, and models of all kinds. Each is the prefix of its full names. */
export const BRIDGED_KINDS = ['a2a', 'model', 'image', 'video'] as const;
export type BridgedKind = (typeof BRIDGED_KINDS)[number];

/** The word for a kind in texts for people. */
export const WORD = {
  a2a: 'agent',
  model: 'model',
  image: 'image model',
  video: 'video model',
} as const satisfies Record<BridgedKind, string>;

/** The argument that names the service, if a tool serves all services of the kind. */
export const NAMED_BY = {
  a2a: 'agent',
  model: 'model',
  image: 'model',
  video: 'model',
} as const satisfies Record<BridgedKind, string>;

const PRIMITIVE = {
  a2a: 'agent',
  model: 'model',
  image: 'image',
  video: 'video',
} as const satisfies Record<BridgedKind, Primitive>;

/** An agent or a model of any kind that the gateway offers as an MCP server. */
export interface BridgedService {
  readonly kind: BridgedKind;
  readonly name: string;
  readonly target: TargetAdapter;
}

/** The agent or model of an address, such as `a2a/weather`; null for an unknown name. */
export function bridgedService(targets: Partial<TargetAdapters>, service: string): BridgedService | null {
  for (const kind of BRIDGED_KINDS) {
    const target = service.startsWith(`${kind}/`) ? targets[kind] : undefined;
    const name = service.slice(kind.length + 1);
    if (target?.has(name)) return { kind, name, target };
  }
  return null;
}

/** The name of an agent or a model that distinguishes it from tool services. */
export const fullName = (kind: BridgedKind, name: string): string => `${kind}/${name}`;

/** The offers of an agent or a model, cheapest first. Throws GatewayError for an unknown name. */
export function offersOf(
  catalog: Pick<Catalog, 'resolve'>,
  kind: BridgedKind,
  name: string,
): { readonly service: string; readonly offers: readonly Offer[] } {
  const { service, offers } = catalog.resolve(name, PRIMITIVE[kind]);
  return { service, offers: offers.toSorted((a, b) => compare(rateOf(a), rateOf(b)) || (a.id < b.id ? -1 : 1)) };
}

/** The price of an agent or a model, in the form of a tool's price. */
export const priceOf = (offers: readonly Offer[]) => viewToolCallPrice(offers[0]!, '', offers);

const rateOf = ({ price: { rates } }: Offer): bigint =>
  (rates.call ?? 0n) + (rates.prompt ?? 0n) + (rates.completion ?? 0n) + (rates.image ?? 0n) + (rates.second ?? 0n);

const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
