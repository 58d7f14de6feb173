import type { FastifyInstance } from 'fastify';
import { dropOldest } from '#wire';
import type { Logger } from './logger.ts';
import type { CallSink } from './observer.ts';

interface RefusalLog {
  /** Receives calls, because they have their own log line. */
  readonly sink: CallSink;
  /** Writes a line for each other request that ends with a status of 400 or above. */
  watch(server: FastifyInstance): void;
}

/** Maximum number of calls in memory until their answer has ended. The line of a call is written before that. */
const REMEMBERED_MAX = 1_000;

/**
 * Writes one line for each request that was refused before it became a call, for example because of a mistyped key,
 * model or address. `level`: `info` in development.
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
      server.addHook('onError', (request, _reply, error, done) => {
        reasons.set(request.raw, error.message);
        done();
      });
      server.addHook('onResponse', (request, reply, done) => {
        const status = reply.raw.statusCode;
        // The level may change while the gateway runs.
        if (status >= 400 && !logged.delete(request.id) && logger.isLevelEnabled(level)) {
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
/** Error messages of requests that are being answered. */
const reasons = new WeakMap<object, string>();
