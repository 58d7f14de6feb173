import type { FastifyInstance, FastifyRequest } from 'fastify';
import { redact } from '#wire';
import type { AdminLog } from './admin-log.ts';
import { administratorOf, isReading } from './admin-roles.ts';

const BODY_MAX = 2_000;
const PATH_MAX = 500;

/**
 * Logs each change that passes the gate on the routes of `app`. The entry is written before the change, so that no
 * change is unlogged. Its status is added after the response. If the log cannot be written, the change is refused.
 */
export function logActs(
  app: FastifyInstance,
  { log, onError }: { readonly log: AdminLog; readonly onError: (error: unknown) => void },
): void {
  const acts = new WeakMap<object, string>();
  app.addHook('preHandler', async (request) => {
    const administrator = administratorOf(request.raw);
    if (administrator === null || isReading(request)) return;
    acts.set(request, await log.note({ ...factsOf(request), actor: administrator.id, status: null }));
  });
  app.addHook('onResponse', async (request, reply) => {
    const id = acts.get(request);
    // A failure is reported only, because the act itself is already in the log.
    if (id !== undefined) await log.end(id, reply.statusCode).catch(onError);
  });
}

/** The parts of a request that go into the log. */
export function factsOf({ ip, method, url, body }: Pick<FastifyRequest, 'ip' | 'method' | 'url' | 'body'>) {
  const text = body === undefined || body === null ? null : JSON.stringify(redact(body));
  return { address: ip, method, path: url.slice(0, PATH_MAX), body: text?.slice(0, BODY_MAX) ?? null };
}
