import type { FastifyInstance, FastifyRequest } from 'fastify';
import { redact } from '#wire';
import type { AdminLog } from './admin-log.ts';
import { administratorOf, isReading } from './admin-roles.ts';

const BODY_MAX = 2_000;
const PATH_MAX = 500;

/**
 * Logs each change that passes the gate below `app`: before it is made, so that none is made unlogged, and again with
 * its outcome. Without the log no change is made.
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
    // The act is in the log either way.
    if (id !== undefined) await log.end(id, reply.statusCode).catch(onError);
  });
}

/** The facts of a request that are logged. */
export function factsOf({ ip, method, url, body }: Pick<FastifyRequest, 'ip' | 'method' | 'url' | 'body'>) {
  const text = body === undefined || body === null ? null : JSON.stringify(redact(body));
  return { address: ip, method, path: url.slice(0, PATH_MAX), body: text?.slice(0, BODY_MAX) ?? null };
}
