import type { FastifyInstance } from 'fastify';
import { dropOldest } from '#wire';
import type { Logger } from './logger.ts';
import type { CallSink } from './observer.ts';

export interface RefusalLog {
  /** Takes the calls that have a line of their own. */
  readonly sink: CallSink;
  /** Adds a line for each other request that ends with a status from 400 on. */
  watch(server: FastifyInstance): void;
}

/** Requests that are answered while others wait: what ends a call comes before the end of its answer. */
const REMEMBERED_MAX = 1_000;

/**
 * One line for each request that was refused before it became a call: a mistyped key, model or address. `level`:
 * `info` where a developer looks on.
 */
export function createRefusalLog(logger: Logger, level: 'info' | 'debug'): RefusalLog {
  const logged = new Set<string>();
  return {
    sink: {
      finished({ requestId, free }) {
        if (free !== null || !logger.isLevelEnabled(level)) return;
        logged.add(requestId);
        dropOldest(logged, REMEMBERED_MAX);
      },
    },
    watch(server) {
      if (!logger.isLevelEnabled(level)) return;
      server.addHook('onError', (request, _reply, error, done) => {
        reasons.set(request.raw, error.message);
        done();
      });
      server.addHook('onResponse', (request, reply, done) => {
        const status = reply.raw.statusCode;
        if (status >= 400 && !logged.delete(request.id)) {
          const path = request.url.split('?', 1)[0]!.slice(0, PATH_CHARS_MAX);
          const reason = reasons.get(request.raw);
          logger[level](
            {
              request_id: request.id,
              method: request.method,
              path,
              status,
              ...(reason === undefined ? {} : { reason }),
            },
            'refused',
          );
        }
        done();
      });
    },
  };
}

const PATH_CHARS_MAX = 200;
/** Of requests that are being answered. */
const reasons = new WeakMap<object, string>();
