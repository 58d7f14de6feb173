import { GatewayError } from '#wire';
import type { Database, Query } from '#store';
import { tagPage, type TaggedPage } from '#gateway';
import { findState, type RollUp } from '#analytics';

/** Pages whose figures need many rows. */
export interface FigurePages {
  /**
   * Returns the cached page of this name, or makes it with `read` from one snapshot. Returns null if `read` does.
   * `isClosed` means that no more calls can be added to its figures. Throws GatewayError `rate_limit_exceeded` if too
   * many other pages wait.
   */
  page(name: string, isClosed: boolean, read: (query: Query) => Promise<object | null>): Promise<TaggedPage | null>;
}

interface Kept {
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

/**
 * Makes pages one at a time, in parallel to the writers, so that a request for the figures of a year doesn't delay
 * calls. A page is cached until calls are added to its figures.
 */
export function createFigurePages(
  database: Pick<Database, 'query' | 'snapshot'>,
  rollUp: Pick<RollUp, 'parts'>,
): FigurePages {
  const kept = new Map<string, Kept>();
  const making = new Map<string, Promise<TaggedPage | null>>();
  let last: Promise<unknown> = Promise.resolve();

  const isCurrent = async (found: Kept): Promise<boolean> => {
    const at = performance.now();
    const { parts } = rollUp;
    if (at < found.freshUntil && (parts === found.parts || at < found.restsUntil)) return true;
    if (at - found.madeAt > (found.isClosed ? CLOSED_MS : OPEN_MS)) return false;
    const { version } = await findState(database.query);
    if (version !== found.version) return false;
    found.freshUntil = at + FRESH_MS;
    found.parts = parts;
    return true;
  };

  const make = async (name: string, isClosed: boolean, read: (query: Query) => Promise<object | null>) => {
    const begun = performance.now();
    const { parts } = rollUp;
    const { version, value } = await database.snapshot(async (query) => ({
      version: (await findState(query)).version,
      value: await read(query),
    }));
    if (value === null) return null;
    const page = tagPage(value);
    const madeAt = performance.now();
    const took = madeAt - begun;
    const restsUntil = took > QUICK_MS ? madeAt + took * REST_TIMES : 0;
    const freshUntil = Math.max(madeAt + FRESH_MS, restsUntil);
    kept.delete(name);
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value!);
    kept.set(name, { page, version, freshUntil, restsUntil, parts, madeAt, isClosed });
    return page;
  };

  return {
    async page(name, isClosed, read) {
      const found = kept.get(name);
      if (found && (await isCurrent(found))) return found.page;
      const running = making.get(name);
      if (running) return running;
      if (making.size >= WAITING_MAX)
        throw new GatewayError('rate_limit_exceeded', 'Too many figures are being read at once. Retry later', {
          retryAfterS: 2,
        });
      const made = last.then(() => make(name, isClosed, read)).finally(() => making.delete(name));
      making.set(name, made);
      last = made.catch(() => {});
      return made;
    },
  };
}
