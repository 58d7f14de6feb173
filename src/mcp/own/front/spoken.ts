import type { Primitive } from '#config';
import { type Catalog, type Offer, type Speaker, type Speakers, viewToolCallPrice } from '#gateway';

/** Primitives that a tool call can ask: agents, and models of all kinds, by the prefix of their names. */
export const SPOKEN = ['a2a', 'model', 'image', 'video'] as const;
export type Spoken = (typeof SPOKEN)[number];

/** The word for a kind, for people. */
export const WORD = {
  a2a: 'agent',
  model: 'model',
  image: 'image model',
  video: 'video model',
} as const satisfies Record<Spoken, string>;

/** The argument that names one, where a tool is for all of a kind. */
export const NAMED_BY = {
  a2a: 'agent',
  model: 'model',
  image: 'model',
  video: 'model',
} as const satisfies Record<Spoken, string>;

const PRIMITIVE = {
  a2a: 'agent',
  model: 'model',
  image: 'image',
  video: 'video',
} as const satisfies Record<Spoken, Primitive>;

/** An agent or a model of any kind that is an MCP server of the gateway's own. */
export interface SpokenService {
  readonly kind: Spoken;
  readonly name: string;
  readonly speaker: Speaker;
}

/** The agent or model of an address: `a2a/weather`. null for an unknown name. */
export function spokenService(speakers: Partial<Speakers>, service: string): SpokenService | null {
  for (const kind of SPOKEN) {
    const speaker = service.startsWith(`${kind}/`) ? speakers[kind] : undefined;
    const name = service.slice(kind.length + 1);
    if (speaker?.has(name)) return { kind, name, speaker };
  }
  return null;
}

/** The name of an agent or a model beside those of tools. */
export const fullName = (kind: Spoken, name: string): string => `${kind}/${name}`;

/** The offers of an agent or a model, the cheapest first. Throws GatewayError for an unknown name. */
export function offersOf(
  catalog: Pick<Catalog, 'resolve'>,
  kind: Spoken,
  name: string,
): { readonly service: string; readonly offers: readonly Offer[] } {
  const { service, offers } = catalog.resolve(name, PRIMITIVE[kind]);
  return { service, offers: offers.toSorted((a, b) => compare(rateOf(a), rateOf(b)) || (a.id < b.id ? -1 : 1)) };
}

/** Its price, in the form of a tool's price. */
export const priceOf = (offers: readonly Offer[]) => viewToolCallPrice(offers[0]!, '', offers);

const rateOf = ({ price: { rates } }: Offer): bigint =>
  (rates.call ?? 0n) + (rates.prompt ?? 0n) + (rates.completion ?? 0n) + (rates.image ?? 0n) + (rates.second ?? 0n);

const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
