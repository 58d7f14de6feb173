import {
  BATCH_TIER,
  DEFAULT_TIER,
  offerId,
  priceId,
  type Price,
  type Rates,
  type MicroUsd,
  type ServiceTiers,
} from '#billing/amounts';
import {
  keyHeaders,
  ownPathsOf,
  type Service,
  type ServiceConfig,
  type HttpTarget,
  type SdkTarget,
  type ModelFacts,
  type Primitive,
  type AgentFacts,
  type MediaFacts,
} from '#config';
import { loadStatements, type Database } from '#store';

/** One provider's offer of one service at one price: what routing chooses from. */
export interface Offer {
  /** Unique over all offers: `<primitive>/<provider id>:<service name>`. */
  readonly id: string;
  /** The name that consumers call it by. */
  readonly service: string;
  readonly primitive: Primitive;
  readonly provider: Provider;
  readonly price: Price;
  /** Prices of parts of the service that have their own price: the name of a tool, tier or resolution to its price. */
  readonly variants: Readonly<Record<string, Price>>;
  /** The amount that is locked if the use of a call is not known beforehand (tokens or seconds). Otherwise null. */
  readonly priceCap: MicroUsd | null;
  readonly endpoint: Endpoint;
  readonly displayName: string;
  readonly description: string;
  readonly createdAt: number;
  readonly model: ModelFacts | null;
  readonly agent: AgentFacts | null;
  readonly media: MediaFacts | null;
  /**
   * Set after a large rise of its price: the price before, and until when (epoch milliseconds) calls have to accept the
   * new one explicitly.
   */
  readonly raised?: { readonly until: number; readonly was: PricedOffer };
  /** A name under which the service is found too, and not listed. */
  readonly formerName?: string;
}

/** All of an offer that decides what a call costs. */
export type PricedOffer = Pick<Offer, 'price' | 'variants' | 'priceCap' | 'agent'>;

export interface Provider {
  /** Public key: base58 Ed25519, or an EVM address in lower case. */
  readonly id: string;
  readonly name: string;
}

/** The address of an offer: reached by the gateway itself, or through the tunnel that its provider dialled in with. */
export type Endpoint = DirectEndpoint | TunnelEndpoint;

/** Header values may be secrets: never logged, never sent to a consumer. */
export interface DirectEndpoint {
  readonly kind: 'direct';
  /**
   * Base URL up to but without the path of the primitive (`…/v1`). It has no trailing slash, unless it is the whole
   * address of a tool.
   */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Consumers may use their own keys here. */
  readonly ownKeys?: true;
  /** It takes batches, in the form of OpenAI's API. */
  readonly batches?: true;
  /** By `pathOfHeaders`: the headers that replace `headers` for requests to that path. */
  readonly headersAt?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * A package of the AI SDK serves it in a process of this machine, so there is no address. `headers` are its secrets,
   * which are not sent.
   */
  readonly sdk?: SdkTarget;
  /** The cost for the operator, for the comparison with the vendor alone; absent if unknown. */
  readonly cost?: NonNullable<HttpTarget['cost']>;
  /** In place of the gateway's own timeouts. */
  readonly timeouts?: NonNullable<HttpTarget['timeouts']>;
}

export interface TunnelEndpoint {
  readonly kind: 'tunnel';
  /** Public key of the provider whose proxy serves it. The proxy may be connected to any gateway. */
  readonly provider: string;
  /** Path of the service inside the tunnel, see servicePath. The path of the request is appended to it. */
  readonly basePath: string;
}

const SQL = loadStatements(import.meta.url, './sql/offers-seen.sql', ['putOfferSeen']);

interface OffersFromConfigOptions {
  /** The public key of a provider of the configuration file. */
  readonly providerId: (providerName: string) => string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** The service blocks of the gateway's own configuration file as offers, one for each block, reached directly. */
export function offersFromConfig(
  services: readonly ServiceConfig[],
  { providerId, createdAt }: OffersFromConfigOptions,
): readonly Offer[] {
  return services.map(({ service, target, formerName }) => {
    if (target.kind === 'command')
      throw new Error(`${service.name} is a command, which only a provider's proxy can run`);
    const provider = { id: providerId(service.providerName), name: service.providerName };
    const besides = {
      ...(target.timeouts === undefined ? {} : { timeouts: target.timeouts }),
      ...(target.cost === undefined ? {} : { cost: target.cost }),
    };
    if (target.kind === 'sdk')
      return toOffer(service, {
        provider,
        endpoint: { kind: 'direct', baseUrl: '', headers: target.secrets, sdk: target, ...besides },
        createdAt,
      });
    const offer = toOffer(service, {
      provider,
      endpoint: {
        kind: 'direct',
        baseUrl: target.url,
        headers: keyHeaders(target.apiKey, ''),
        ...(target.ownKeys ? { ownKeys: true } : {}),
        ...(target.batches ? { batches: true } : {}),
        ...besides,
        ...(service.primitive === 'model' ? headersOfWires(service.model.wires, target.apiKey) : {}),
      },
      createdAt,
    });
    return formerName === undefined ? offer : { ...offer, formerName };
  });
}

/** The endpoint with a consumer's own key in place of the operator's. */
export function withOwnKey(endpoint: DirectEndpoint, key: string): DirectEndpoint {
  const { headersAt = {} } = endpoint;
  const paths = Object.keys(headersAt).map((path) => [path, keyHeaders(key, path)] as const);
  return { ...endpoint, headers: keyHeaders(key, ''), headersAt: Object.fromEntries(paths) };
}

/** The headers with the key, for the wires whose requests do not go out as those of chat. */
function headersOfWires(
  wires: readonly string[] | undefined,
  apiKey: string | null,
): Pick<DirectEndpoint, 'headersAt'> {
  const paths = ownPathsOf(wires ?? []);
  if (paths.length === 0) return {};
  return { headersAt: Object.fromEntries(paths.map((path) => [path, keyHeaders(apiKey, path)])) };
}

const serviceTiers = new WeakMap<Offer, ServiceTiers>();

/** The prices of a model by service tier; undefined if it has only one, and for all other offers. */
export function serviceTiersOf(offer: Offer): ServiceTiers | undefined {
  const { primitive, price, variants } = offer;
  if (primitive !== 'model') return undefined;
  let tiers = serviceTiers.get(offer);
  if (tiers !== undefined || Object.keys(variants).length === 0) return tiers;
  serviceTiers.set(offer, (tiers = { ...variants, [DEFAULT_TIER]: price }));
  return tiers;
}

/**
 * The price of a line of a batch that the provider of an offer gets as a batch of its own. undefined if it takes no
 * batches, or has no price for them.
 */
export const batchPriceOf = ({ endpoint, variants }: Pick<Offer, 'endpoint' | 'variants'>): Price | undefined =>
  endpoint.kind === 'direct' && endpoint.batches === true ? variants[BATCH_TIER] : undefined;

/** The direct form of an offer's name. Consumers use it to pin the provider. */
export function directForm(offer: Pick<Offer, 'provider' | 'service'>): string {
  return `${offer.provider.id}:${offer.service}`;
}

/** The direct form of an offer, from its id: the id without the primitive. */
export const pinned = (id: string): string => id.slice(id.indexOf('/') + 1);

/** The public key of an offer's provider, from the offer's id. */
export const providerOf = (id: string): string => pinned(id).split(':', 1)[0]!;

export function toOffer(
  service: Service,
  where: { readonly provider: Provider; readonly endpoint: Endpoint; readonly createdAt: number },
): Offer {
  const price = (rates: Rates): Price => ({ id: priceId(where.provider.id, service.name, rates), rates });
  return {
    ...where,
    id: offerId({ primitive: service.primitive, provider: where.provider.id, service: service.name }),
    service: service.name,
    primitive: service.primitive,
    price: price(service.rates),
    variants: Object.fromEntries(Object.entries(service.variants).map(([name, rates]) => [name, price(rates)])),
    priceCap: service.primitive === 'tool' || service.primitive === 'agent' ? service.priceCap : null,
    displayName: service.displayName,
    description: service.description,
    model: service.primitive === 'model' ? service.model : null,
    agent: service.primitive === 'agent' ? service.agent : null,
    media: service.primitive === 'image' || service.primitive === 'video' ? service.media : null,
  };
}

/**
 * Returns the offers of the gateway's configuration file with `createdAt` set to the time when this database first saw
 * them. Rejects with the database's error.
 */
export async function withFirstSeen(
  database: Pick<Database, 'batch'>,
  offers: readonly Offer[],
): Promise<readonly Offer[]> {
  if (offers.length === 0) return offers;
  // All gateways write in the same order. Otherwise two gateways that start at once could deadlock on each other's
  // rows.
  const ordered = offers.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const rows = await database.batch(
    ordered.map(({ id, createdAt }) => ({ statement: SQL.putOfferSeen, params: [id, createdAt] })),
  );
  const seen = new Map(rows.flat().map((row) => [row['offer'] as string, Number(row['first_seen'])]));
  return offers.map((offer) => ({ ...offer, createdAt: seen.get(offer.id)! }));
}

/**
 * Whether the provider of a model or an image model ends its work, and its bill, when the connection of a request is
 * closed. `isStream`: its answer is streamed.
 */
export function stopsAt({ model, media }: Pick<Offer, 'model' | 'media'>, isStream: boolean): boolean {
  const stops = (model ?? media)?.stops;
  return stops === undefined || (stops === 'streams' && isStream);
}

/** The same as listings show it. A video is a job, which goes on. null for tools and agents, which are told. */
export function viewStops(offers: readonly Offer[]) {
  const { primitive } = offers[0]!;
  if (primitive === 'tool' || primitive === 'agent') return { stops: null, stops_whole: null };
  const all = (isStream: boolean) => primitive !== 'video' && offers.every((offer) => stopsAt(offer, isStream));
  return { stops: all(true), stops_whole: all(false) };
}

const couldStop = (what: string) =>
  ({
    type: ['boolean', 'null'],
    description: `Whether ${what} whose client leaves is ended at its provider, with what it costs. False: it is read on, and paid. null for tools and agents, which are told by their protocol.`,
  }) as const;
export const stopsProperties = {
  stops: couldStop('a stream'),
  stops_whole: couldStop('an answer in one piece'),
} as const;

/** The provider is in the operator's own file. It bills the operator, who believes what it reports. */
export const isOwn = ({ endpoint }: Pick<Offer, 'endpoint'>): boolean => endpoint.kind === 'direct';
