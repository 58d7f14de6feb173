import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { networkLevels, printable } from '#security';
import type { Database, Query } from '#store';
import { type Config, type Primitive, PRIMITIVES } from '#config';
import type { Catalog } from '#catalog';
import { clientNetworkOf, DOCUMENTED, sendPage, tagPage, type TaggedPage } from '#http';
import { Places, Shares } from '#wire';
import {
  DAY_MS,
  findListing,
  findListings,
  findMarket,
  isCalled,
  type PublicRange,
  findState,
  type RollUp,
} from '#analytics';
import { type DayRangeQuery, dayRangeSchema, parseDayRange } from '../day-range.ts';
import { listingSchema, listingsSchema, viewListing, viewListings, marketSchema, viewMarket } from './public-view.ts';

interface PublicFiguresDeps {
  readonly config: Pick<Config, 'analytics' | 'mode'>;
  readonly pages: FigurePages;
  readonly database: Pick<Database, 'query'>;
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly now: () => number;
}

/** Browsers and proxies may cache a page for 30 s. */
const CACHE_CONTROL = 'public, max-age=30';
/** If figures are delayed, these last days are hidden: today and yesterday. */
const DELAYED_DAYS = 2;

/** The routes for public figures. Register it under `/api/v1`. */
export function publicFiguresRoutes(deps: PublicFiguresDeps): FastifyPluginAsync {
  return async (app) => {
    showMarket(app, deps);
    listListings(app, deps);
    showListing(app, deps);
  };
}

function showMarket(app: FastifyInstance, deps: PublicFiguresDeps): void {
  const schema = {
    summary: 'Show the figures of the market',
    operationId: 'publicAnalytics',
    description:
      'Calls, volume, providers and users by UTC day, over all accounts. No credential is needed. Send the `etag` as `if-none-match`, and an unchanged answer is not sent again.',
    tags: ['Analytics'],
    security: [],
    querystring: dayRangeSchema,
    response: { 200: { description: 'The figures', ...marketSchema } },
  };
  app.get<{ Querystring: DayRangeQuery }>('/analytics/public', { schema }, async (request, reply) => {
    const publicRange = shownNow(deps);
    const range = parseDayRange(request.query, deps.now());
    const name = `market ${range.first} ${range.last} ${publicRange.until}`;
    const page = await deps.pages.page(clientNetworkOf(request), name, isClosed(range.last, deps), async (query) =>
      viewMarket(await findMarket(query, range, publicRange), range),
    );
    return sendPage(request, reply, page!, CACHE_CONTROL);
  });
}

const LISTING_DAYS = 30;

const listingRange = (deps: PublicFiguresDeps) => ({ first: today(deps) - LISTING_DAYS + 1, last: today(deps) });

function listListings(app: FastifyInstance, deps: PublicFiguresDeps): void {
  const schema = {
    summary: 'List the figures of services',
    operationId: 'listServiceAnalytics',
    description:
      'Sums of the last 30 days, today included, of every service that was called, the most used first. No credential is needed.',
    tags: ['Analytics'],
    security: [],
    response: { 200: { description: 'The figures', ...listingsSchema } },
  };
  app.get('/analytics/service', { schema }, async (request, reply) => {
    const publicRange = shownNow(deps);
    const range = listingRange(deps);
    const name = `listings ${range.last} ${publicRange.until}`;
    const page = await deps.pages.page(clientNetworkOf(request), name, false, async (query) =>
      viewListings(await findListings(query, range, publicRange), range),
    );
    return sendPage(request, reply, page!, CACHE_CONTROL);
  });
}

function showListing(app: FastifyInstance, deps: PublicFiguresDeps): void {
  const properties = {
    '*': {
      type: 'string',
      maxLength: 300,
      description: 'The primitive and the name of the service, such as `model/demo/chat` or `model/demo%2Fchat`',
      [DOCUMENTED]: { pattern: `^(?:${PRIMITIVES.join('|')})/.` },
    },
  };
  const schema = {
    summary: 'Show the figures of a service',
    operationId: 'serviceAnalytics',
    description:
      'The last 30 days of a service, today included: calls, failures, times and prices of each provider. No credential is needed.',
    tags: ['Analytics'],
    security: [],
    params: { type: 'object', properties },
    response: { 200: { description: 'The figures', ...listingSchema } },
  };
  // A name may contain slashes, encoded or not.
  app.get<{ Params: { readonly '*': string } }>('/analytics/service/*', { schema }, async (request, reply) => {
    const { primitive, service } = readListing(request.params['*']);
    const publicRange = shownNow(deps);
    const range = listingRange(deps);
    const offers = deps.catalog.offers().filter((offer) => offer.service === service);
    const providers = offers.filter((offer) => offer.primitive === primitive).map(({ provider }) => provider.id);
    const notFound = () =>
      new GatewayError('not_found', `No ${primitive} has the name ${printable(service)}`, { param: 'name' });
    // Unknown names are refused before they take a place in the queue of pages.
    if (providers.length === 0 && !(await isCalled(deps.database.query, { primitive, service }, range, publicRange)))
      throw notFound();
    const name = `${primitive} ${range.last} ${publicRange.until} ${providers.join()} ${service}`;
    const page = await deps.pages.page(clientNetworkOf(request), name, false, async (query) => {
      const listing = await findListing(query, { primitive, service, providers }, range, publicRange);
      return listing && viewListing(listing, { primitive, service, range }, offers);
    });
    if (page === null) throw notFound();
    return sendPage(request, reply, page, CACHE_CONTROL);
  });
}

/** Reads a path such as `model/demo/chat`. Throws GatewayError `invalid_request`. */
function readListing(path: string): { readonly primitive: Primitive; readonly service: string } {
  const [first = '', ...rest] = path.split('/');
  const primitive = PRIMITIVES.find((each) => each === first);
  if (primitive === undefined)
    throw new GatewayError(
      'invalid_request',
      `The address must continue with one of ${PRIMITIVES.join(', ')}, then a name`,
      {
        param: 'primitive',
      },
    );
  return { primitive, service: rest.join('/') };
}

const today = ({ now }: PublicFiguresDeps): number => Math.floor(now() / DAY_MS);

const isClosed = (last: number, deps: PublicFiguresDeps): boolean => last < today(deps);

/** Returns which days and calls are public. Throws GatewayError `not_found` if the operator publishes no figures. */
function shownNow(deps: PublicFiguresDeps): PublicRange {
  const { analytics, mode } = deps.config;
  if (analytics.public === 'off') throw new GatewayError('not_found', 'This gateway does not publish its figures');
  const until = analytics.public === 'delayed' ? today(deps) - DELAYED_DAYS : Number.MAX_SAFE_INTEGER;
  return { until, usersMin: analytics.usersMin, development: mode === 'development' };
}

interface FigurePages {
  /**
   * Returns the cached page of this name, or makes it with `read` from one snapshot. Returns null if `read` does.
   * `isClosed` means that no more calls can be added to its figures. Pages are made one at a time, and networks take
   * turns. Throws GatewayError `rate_limit_exceeded` if too many other pages wait, or too many of this network.
   */
  page(
    network: string,
    name: string,
    isClosed: boolean,
    read: (query: Query) => Promise<object | null>,
  ): Promise<TaggedPage | null>;
}

interface CachedFigures {
  readonly page: TaggedPage;
  readonly version: bigint;
  /**
   * Until this time of `performance.now()` the page is returned without a check, unless this process has added calls.
   */
  freshUntil: number;
  parts: number;
  /**
   * Until this time of `performance.now()` the page is returned even if calls were added, because making it takes long.
   */
  readonly restsUntil: number;
  readonly madeAt: number;
  readonly isClosed: boolean;
}

const KEPT_MAX = 200;
/** For this time after a check the database isn't asked again whether a page has changed. */
const FRESH_MS = 1_000;
/** A page that takes longer than this to make is cached for the given multiple of that time. */
const QUICK_MS = 1_000;
const REST_TIMES = 10;
/** A page is made again after this time, because some figures, such as the number of accounts, change without calls. */
const OPEN_MS = 60_000;
const CLOSED_MS = 600_000;
const WAITING_MAX = 32;
/** The party of all public pages, see Database.snapshot. */
const PUBLIC = 'public';

/**
 * Makes pages one at a time, in parallel to the writers, so that a request for the figures of a year doesn't delay
 * calls. A page is cached until calls are added to its figures.
 */
export function createFigurePages(
  database: Pick<Database, 'query' | 'snapshot'>,
  rollUp: Pick<RollUp, 'parts'>,
): FigurePages {
  const cache = new Map<string, CachedFigures>();
  const making = new Map<string, Promise<TaggedPage | null>>();
  const places = new Places({ total: 1, perShare: 1 });
  /** Pages that wait or are being made, by the network that asked for them first. */
  const waiting = new Shares(WAITING_MAX, WAITING_MAX, networkLevels);

  const isCurrent = async (cached: CachedFigures): Promise<boolean> => {
    const at = performance.now();
    const { parts } = rollUp;
    if (at < cached.freshUntil && (parts === cached.parts || at < cached.restsUntil)) return true;
    if (at - cached.madeAt > (cached.isClosed ? CLOSED_MS : OPEN_MS)) return false;
    const { version } = await findState(database.query);
    if (version !== cached.version) return false;
    cached.freshUntil = at + FRESH_MS;
    cached.parts = parts;
    return true;
  };

  const make = async (name: string, isClosed: boolean, read: (query: Query) => Promise<object | null>) => {
    const begun = performance.now();
    const { parts } = rollUp;
    const { version, value } = await database.snapshot(PUBLIC, async (query) => ({
      version: (await findState(query)).version,
      value: await read(query),
    }));
    if (value === null) return null;
    const page = tagPage(value);
    const madeAt = performance.now();
    const took = madeAt - begun;
    const restsUntil = took > QUICK_MS ? madeAt + took * REST_TIMES : 0;
    const freshUntil = Math.max(madeAt + FRESH_MS, restsUntil);
    cache.delete(name);
    if (cache.size >= KEPT_MAX) cache.delete(cache.keys().next().value!);
    cache.set(name, { page, version, freshUntil, restsUntil, parts, madeAt, isClosed });
    return page;
  };

  return {
    async page(network, name, isClosed, read) {
      const cached = cache.get(name);
      if (cached && (await isCurrent(cached))) return cached.page;
      const running = making.get(name);
      if (running) return running;
      if (!waiting.mayTake(network))
        throw new GatewayError('rate_limit_exceeded', 'Too many figures are being read at once. Retry later', {
          retryAfterS: 2,
        });
      waiting.take(network);
      const page = places
        .take(network)
        .then((place) => make(name, isClosed, read).finally(() => place!.release()))
        .finally(() => {
          making.delete(name);
          waiting.leave(network);
        });
      making.set(name, page);
      return page;
    },
  };
}
