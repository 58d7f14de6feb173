import type { FastifyInstance } from 'fastify';
import { dropOldest } from '#wire';

/** The first API answers that a page needs, as its document announces them. */
interface FirstAnswers {
  /** Paths that the browser requests while it still loads the scripts. */
  readonly early: readonly string[];
  /** Answers inside of the document, by path, so that the page needs no request for them. */
  readonly answers?: Readonly<Record<string, unknown>>;
}

/**
 * The most characters of an answer inside of the document. A longer one would delay the styles and scripts on a slow
 * line.
 */
const ANSWER_MAX = 8_192;
/** An answer is reused for this time. */
const FRESH_MS = 1_000;
const KEPT_MAX = 256;

/**
 * Puts the first answer into the document if it is small. The answer is requested from the API inside of this process,
 * without a credential, at most once per second.
 */
export function createFirstAnswers(
  server: Pick<FastifyInstance, 'inject'>,
  now: () => number = () => performance.now(),
): (early: readonly string[]) => Promise<FirstAnswers> {
  const kept = new Map<string, { readonly until: number; readonly answer: Promise<unknown> }>();
  const ask = async (url: string): Promise<unknown> => {
    const { statusCode, body } = await server.inject({ url, headers: { accept: 'application/json' } });
    return statusCode === 200 && body.length <= ANSWER_MAX ? (JSON.parse(body) as unknown) : null;
  };
  return async (early) => {
    const [first, ...rest] = early;
    if (first === undefined) return { early };
    let found = kept.get(first);
    if (!found || found.until <= now()) {
      kept.delete(first);
      kept.set(first, (found = { until: now() + FRESH_MS, answer: ask(first) }));
      dropOldest(kept, KEPT_MAX);
    }
    const answer = await found.answer;
    return answer === null ? { early } : { early: rest, answers: { [first]: answer } };
  };
}
