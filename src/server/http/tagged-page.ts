import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { inTurns } from '#wire';

export interface TaggedPage {
  readonly body: Buffer;
  readonly etag: string;
}

export function tagPage(value: unknown): TaggedPage {
  const body = Buffer.from(JSON.stringify(value));
  return { body, etag: tagOf(body) };
}

/** The ETag of a content, a hash of it. */
export const tagOf = (content: Buffer | string): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;

/** Whether the client already has the content with this ETag, so that the answer is 304 (RFC 9110, 13.1.2). */
export function hasTagged(request: FastifyRequest, etag: string): boolean {
  const known = request.headers['if-none-match'];
  // A proxy that compresses the content makes its ETag weak (`W/`).
  return (
    known !== undefined &&
    (known.trim() === '*' || known.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag))
  );
}

/** Sends the page, or 304 if the client already has it. */
export function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, etag }: TaggedPage,
  cacheControl = 'no-cache',
): FastifyReply {
  void reply.header('etag', etag).header('cache-control', cacheControl);
  if (hasTagged(request, etag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(body);
}

interface FreshPageOptions {
  /** Increases when the data of the page changes, as far as such changes are noticed at once. */
  readonly version: () => number;
  readonly now: () => number;
  /** The maximum age of a page with an unchanged `version`, in milliseconds. */
  readonly freshMs?: number;
  /** CPU milliseconds that this thread has used. */
  readonly worked?: () => number;
}

/** A page that takes at most this much work is made again at every change. */
const QUICK_MS = 20;
/** A slower page is kept for at least this many times the time that it took. */
const REST_TIMES = 10;
/** Work on a page in one turn of the event loop. */
const TURN_MS = 5;

/**
 * A page with the rows in `data`, which is made again when its version has increased or when it is older than
 * `freshMs`. A page of all offers takes milliseconds, and anybody may request it without a credential. With very many
 * offers it takes longer: it is then made in turns of the event loop, and kept longer. So neither clients nor providers
 * that change their offers all the time can keep this process busy with it. `rows` makes one row at each step.
 */
export function createFreshPage(
  rows: () => Iterable<object>,
  { version, now, freshMs = 250, worked = threadWork }: FreshPageOptions,
): () => Promise<TaggedPage> {
  let page: Promise<TaggedPage> | null = null;
  let isMade = false;
  let madeAt = 0;
  let madeOf = 0;
  let restMs = 0;
  const noteWork = (workMs: number) => {
    restMs = workMs > QUICK_MS ? workMs * REST_TIMES : 0;
    isMade = true;
  };
  return () => {
    // The absolute value: a clock that was set back must not keep a page for longer.
    const age = Math.abs(now() - madeAt);
    const isDue = isMade && age >= restMs && (madeOf !== version() || age >= freshMs);
    if (page === null || isDue) {
      madeOf = version();
      madeAt = now();
      isMade = false;
      page = inTurns(writeRows(rows, worked, noteWork), TURN_MS);
      page.catch(() => (page = null));
    }
    return page;
  };
}

/** Writes one row at each step. `onEnd` gets the CPU milliseconds of all steps. */
function* writeRows(
  rows: () => Iterable<object>,
  worked: () => number,
  onEnd: (workMs: number) => void,
): Generator<void, TaggedPage, undefined> {
  const texts: string[] = [];
  let workMs = 0;
  let begun = worked();
  for (const row of rows()) {
    texts.push(JSON.stringify(row));
    workMs += worked() - begun;
    yield;
    begun = worked();
  }
  const body = Buffer.from(`{"data":[${texts.join(',')}]}`);
  const etag = tagOf(body);
  onEnd(workMs + worked() - begun);
  return { body, etag };
}

/** CPU time of this thread in milliseconds. Other work on the machine does not count. */
function threadWork(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
