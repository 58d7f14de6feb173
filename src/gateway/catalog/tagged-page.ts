import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A page in bytes, with the tag by which a client asks whether it has changed. */
export interface TaggedPage {
  readonly body: Buffer;
  readonly etag: string;
}

export function tagPage(value: unknown): TaggedPage {
  const body = Buffer.from(JSON.stringify(value));
  return { body, etag: tagOf(body) };
}

/** The tag of a content: another content has another one. */
export const tagOf = (content: Buffer | string): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;

/** The client has what the tag names, so that 304 is its answer (RFC 9110, 13.1.2). */
export function hasTagged(request: FastifyRequest, etag: string): boolean {
  const known = request.headers['if-none-match'];
  // A proxy that compresses on the way makes a tag weak.
  return (
    known !== undefined &&
    (known.trim() === '*' || known.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag))
  );
}

/** Answers with the page, or with 304 to a client that has it. */
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
  /** Grows with what the page is made of, as far as that is known at once. */
  readonly version: () => number;
  readonly now: () => number;
  /** How old a page may be whose `version` has not grown. */
  readonly freshMs?: number;
  /** Milliseconds of work that this thread has done. */
  readonly worked?: () => number;
}

/** A page that takes no more work than this is made whenever it has changed. */
const QUICK_MS = 20;
/** A slower page is kept for at least so many times the time that it took. */
const REST_TIMES = 10;

/**
 * A page that is made anew when its version has grown, or when it is older than `freshMs`. A page of every offer
 * takes milliseconds, and needs no credential. With very many offers it takes longer, and is kept longer: neither
 * clients nor providers that change their offers all the time can keep this process busy with it.
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
    // A clock that was set back does not keep a page for longer.
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

/** CPU time of this thread: other work on the machine does not count. */
function threadWork(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
