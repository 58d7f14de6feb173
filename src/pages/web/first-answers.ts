import type { FastifyInstance } from 'fastify';
import { dropOldest } from '#wire';

/** A document tells its page of these answers, which it asks for first. */
interface FirstAnswers {
  /** Paths that the browser asks for while it still loads the scripts. */
  readonly early: readonly string[];
  /** Answers that are in the document, by path: the page then waits for no other request. */
  readonly answers?: Readonly<Record<string, unknown>>;
}

/** A longer answer, in characters, would keep the styles and scripts behind it waiting on a slow line. */
const ANSWER_MAX = 8_192;
/** Visitors of one second get the same answer. */
const FRESH_MS = 1_000;
const KEPT_MAX = 256;

/**
 * Puts the first of the answers into the document if it is small. It is the answer of the API to anybody, asked for
 * inside of this process at most once a second.
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
