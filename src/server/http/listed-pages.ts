import { createHash } from 'node:crypto';
import { GatewayError } from '#errors';
import { networkLevels } from '#security';
import { dropOldest, inTurns, ownTurn, Places, Shares } from '#wire';
import type { TaggedPage } from './tagged-page.ts';

interface EntryText {
  readonly group: readonly object[];
  readonly bytes: Buffer;
  readonly digest: Buffer;
}

/** A list of entries, as a member of a page. */
class PageEntries {
  readonly groups: readonly (readonly object[])[];
  readonly textOf: (group: readonly object[]) => EntryText;

  constructor(groups: readonly (readonly object[])[], textOf: (group: readonly object[]) => EntryText) {
    this.groups = groups;
    this.textOf = textOf;
  }
}

/**
 * Makes lists of entries. Each entry shows a group of things, such as the offers of a model. Its text is made once, and
 * kept while the same things exist. `view` must depend on nothing else. A group is never empty.
 */
export function createPageEntries<T extends object>(
  view: (group: readonly T[]) => object,
): (groups: readonly (readonly T[])[]) => PageEntries {
  const texts = new WeakMap<object, EntryText>();
  const textOf = (group: readonly object[]): EntryText => {
    const entry = texts.get(group[0]!);
    if (entry && entry.group.length === group.length && entry.group.every((one, at) => one === group[at])) return entry;
    const bytes = Buffer.from(JSON.stringify(view(group as readonly T[])));
    const text = { group, bytes, digest: createHash('sha256').update(bytes).digest() };
    texts.set(group[0]!, text);
    return text;
  };
  return (groups) => new PageEntries(groups, textOf);
}

/** The members of the object that a page is. Values are JSON, or PageEntries. */
export type PageMembers = Readonly<Record<string, unknown>>;

interface WrittenPage {
  readonly pieces: readonly Buffer[];
  readonly etag: string;
}

/** Yields after each entry. The ETag is a hash of the digests, because that of a page of 8 MB takes 20 ms. */
function* writePage(members: PageMembers): Generator<void, WrittenPage, undefined> {
  const pieces: Buffer[] = [];
  const hash = createHash('sha256');
  const add = (text: string) => {
    const bytes = Buffer.from(text);
    pieces.push(bytes);
    hash.update(bytes);
  };
  let before = '{';
  for (const [name, value] of Object.entries(members)) {
    add(`${before}${JSON.stringify(name)}:`);
    before = ',';
    if (!(value instanceof PageEntries)) {
      add(JSON.stringify(value));
      continue;
    }
    add('[');
    for (const [at, group] of value.groups.entries()) {
      const { bytes, digest } = value.textOf(group);
      if (at > 0) pieces.push(COMMA);
      pieces.push(bytes);
      hash.update(digest);
      yield;
    }
    add(']');
  }
  add('}');
  return { pieces, etag: `"${hash.digest('base64url').slice(0, 22)}"` };
}

async function pageOf(members: PageMembers): Promise<TaggedPage> {
  const { pieces, etag } = await inTurns(writePage(members), TURN_MS);
  // To join 8 MB takes some milliseconds, and so does sending them, which follows.
  await ownTurn();
  const body = Buffer.concat(pieces);
  await ownTurn();
  return { body, etag };
}

const TURN_MS = 5;
const COMMA = Buffer.from(',');

/** Most pages that are kept: enough for the usual queries and some parts of long lists. */
const PAGES_MAX = 32;
/** The newest one is kept in any case. */
const BYTES_MAX = 32 * 1024 * 1024;
/** Pages that wait, or are being made. */
const WAITING_MAX = 32;

interface CachedPage {
  readonly page: Promise<TaggedPage>;
  bytes: number;
}

/**
 * Pages with lists that anybody may ask for, with selections of his own. They are made one at a time, in turns of the
 * event loop, and those who ask take turns. A page is kept until the version of its data changes.
 */
export class ListedPages {
  readonly #version: () => number;
  readonly #pages = new Map<string, CachedPage>();
  #keptOf = -1;
  readonly #places = new Places({ total: 1, perShare: 1 });
  readonly #waiting = new Shares(WAITING_MAX, WAITING_MAX, networkLevels);

  constructor(version: () => number) {
    this.#version = version;
  }

  /**
   * The page with this key. `asker`: the network or account that asks. Rejects with GatewayError `rate_limit_exceeded`
   * if too many pages wait, or too many of the asker, and with the error that `members` throws.
   */
  page(key: string, asker: string, members: () => PageMembers): Promise<TaggedPage> {
    const version = this.#version();
    if (this.#keptOf !== version) this.#pages.clear();
    this.#keptOf = version;
    const cached = this.#pages.get(key);
    const entry = cached ?? { page: this.once(asker, members), bytes: 0 };
    this.#pages.delete(key);
    this.#pages.set(key, entry);
    dropOldest(this.#pages, PAGES_MAX);
    if (!cached)
      entry.page.then(
        ({ body }) => {
          entry.bytes = body.length;
          this.#drop();
        },
        () => {
          if (this.#pages.get(key) === entry) this.#pages.delete(key);
        },
      );
    return entry.page;
  }

  /** As `page`, for a page that nobody else will ask for. */
  async once(asker: string, members: () => PageMembers): Promise<TaggedPage> {
    if (!this.#waiting.mayTake(asker))
      throw new GatewayError('rate_limit_exceeded', 'Too many lists are being made at once. Retry later', {
        retryAfterS: 1,
      });
    this.#waiting.take(asker);
    try {
      const place = await this.#places.take(asker);
      try {
        return await pageOf(members());
      } finally {
        place?.release();
      }
    } finally {
      this.#waiting.leave(asker);
    }
  }

  /** Drops the oldest pages that have more than BYTES_MAX with those after them. */
  #drop(): void {
    let bytes = 0;
    let isNewest = true;
    for (const [key, cached] of [...this.#pages].reverse()) {
      bytes += cached.bytes;
      if (bytes > BYTES_MAX && !isNewest) this.#pages.delete(key);
      isNewest = false;
    }
  }
}
