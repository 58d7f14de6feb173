import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

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

/**
 * A page that is made again when its version has increased or when it is older than `freshMs`. A page of all offers
 * takes milliseconds, and anybody may request it without a credential. With very many offers it takes longer, and is
 * then kept longer. So neither clients nor providers that change their offers all the time can keep this process busy
 * with it.
 */
export function createFreshPage(
  make: () => unknown,
  { version, now, freshMs = 250, worked = threadWork }: FreshPageOptions,
): () => TaggedPage {
  let page: TaggedPage | null = null;
  let madeAt = 0;
  let madeOf = 0;
  let restMs = 0;
  return () => {
    // The absolute value: a clock that was set back must not keep a page for longer.
    const age = Math.abs(now() - madeAt);
    if (!page || (age >= restMs && (madeOf !== version() || age >= freshMs))) {
      madeOf = version();
      madeAt = now();
      const begun = worked();
      page = tagPage(make());
      const took = worked() - begun;
      restMs = took > QUICK_MS ? took * REST_TIMES : 0;
    }
    return page;
  };
}

/** CPU time of this thread in milliseconds. Other work on the machine does not count. */
function threadWork(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
