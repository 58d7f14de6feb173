import type { FastifyInstance } from 'fastify';
import { DatabaseError } from '#store';
import { LedgerUnavailable, LOST } from '#billing';

export interface Readiness {
  readonly ready: boolean;
  /**
   * The checked parts, each with `ok` or its problem. The problem contains no secrets. It completes a sentence that
   * begins with the part's name: `is shutting down`.
   */
  readonly checks: Readonly<Record<string, string>>;
}

interface HealthOptions {
  ready(): Readiness | Promise<Readiness>;
  /** The time in which a crash undoes charges, in milliseconds; null or absent for none. */
  readonly flushMs?: number | null;
  /** Longest wait for `ready` in milliseconds. Then the answer is "not ready". */
  readonly timeoutMs?: number;
}

/**
 * `/health/live` (the process runs), `/health/ready` (it can take calls; otherwise 503, also during shutdown) and
 * `/api/v1/ping`.
 */
export function healthRoutes(options: HealthOptions): (app: FastifyInstance) => Promise<void> {
  const { timeoutMs = 2000, flushMs = null } = options;
  const flush =
    flushMs === null
      ? {}
      : { flush: `up to ${flushMs} ms after the answer: a crash undoes the charges of at most this time` };
  const state = (description: string, properties: object = {}) => ({
    description,
    type: 'object',
    properties: { status: { type: 'string' }, ...properties },
  });
  const parts = {
    checks: { type: 'object', additionalProperties: { type: 'string' } },
    flush: {
      type: 'string',
      description: 'When charges are on the disk, if not before the answer (`ledger.flush`).',
    },
  };
  const why = { message: { type: 'string', description: 'What is not ready, in a sentence.' } };
  return async (app) => {
    app.addHook('onSend', (_request, reply, payload, done) => {
      reply.header('cache-control', 'no-store');
      done(null, payload);
    });

    app.get(
      '/health/live',
      {
        schema: {
          tags: ['Operations'],
          security: [],
          summary: 'Is the process alive?',
          description: 'For supervisors: an answer means that it runs, whatever it can reach.',
          response: { 200: state('It is.') },
        },
      },
      async () => ({ status: 'ok' }),
    );

    app.get(
      '/health/ready',
      {
        schema: {
          tags: ['Operations'],
          security: [],
          summary: 'Can it take calls?',
          description:
            'For load balancers: 503 while nothing can be written to the database or the ledger refuses all operations, and from the moment a shutdown begins. `message` and `checks` say what is wrong.',
          response: {
            200: state('It can.', parts),
            503: state('Not ready; `message` says why.', { ...parts, ...why }),
          },
        },
      },
      async (_request, reply) => {
        const { ready, checks } = await withinTime(options.ready, timeoutMs);
        if (ready) return { status: 'ok', checks, ...flush };
        return reply.code(503).send({ status: 'unavailable', message: sentenceOf(checks), checks, ...flush });
      },
    );

    app.get(
      '/api/v1/ping',
      {
        schema: {
          tags: ['Operations'],
          security: [],
          summary: 'Answers pong',
          description: 'Shows that this address is that of the gateway. It reads nothing.',
          produces: ['text/plain'],
          response: { 200: { type: 'string' } },
        },
      },
      async (_request, reply) => reply.header('content-type', 'text/plain; charset=utf-8').send('pong'),
    );
  };
}

/** All problems as sentences: `The database cannot be reached or written to`. */
function sentenceOf(checks: Readiness['checks']): string {
  const wrong = Object.entries(checks).filter(([, state]) => state !== 'ok');
  return wrong.map(([name, state]) => `The ${name} ${state}`).join('. ');
}

async function withinTime(ready: HealthOptions['ready'], timeoutMs: number): Promise<Readiness> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Readiness>((resolve) => {
    timer = setTimeout(
      () => resolve({ ready: false, checks: { gateway: `did not finish its checks within ${timeoutMs} ms` } }),
      timeoutMs,
    );
  });
  try {
    return await Promise.race([late, ready()]);
  } catch {
    return { ready: false, checks: { gateway: 'could not check itself' } };
  } finally {
    clearTimeout(timer);
  }
}

interface DatabaseCheckOptions {
  /** A small write. It resolves when the write is durable. */
  readonly write: () => Promise<void>;
  /** `Ledger.probe`. It is asked after each write that succeeded. */
  readonly ledger: () => Promise<void>;
  /** Called when another part is the problem than before, or none is (null), with the error. */
  readonly onChange: (problem: 'database' | 'ledger' | null, error?: unknown) => void;
  readonly timeoutMs?: number;
  /** How long a result is used, in milliseconds of the monotonic clock. */
  readonly keepMs?: number;
}

/** Error codes for a full disk: SQLite's SQLITE_FULL, PostgreSQL's disk_full. */
const FULL: ReadonlySet<string> = new Set(['sqlite_13', '53100']);
/** Error codes for a read-only database: SQLite's SQLITE_READONLY, PostgreSQL's read_only_sql_transaction. */
const READ_ONLY = /^(?:sqlite_8|25006)$/;

/**
 * Checks whether the database accepts writes, and the ledger operations. Resolves with `ok`, or with the problem as
 * text without names and addresses. A database with a full disk can still answer queries for a long time while no call
 * can be billed. So the check writes, but at most once in `keepMs`.
 */
export function createDatabaseCheck({
  write,
  ledger,
  onChange,
  timeoutMs = 1_500,
  keepMs = 1_000,
}: DatabaseCheckOptions): () => Promise<string> {
  let running: Promise<string> | null = null;
  let result = { state: 'ok', at: -Infinity };
  let problem: 'database' | 'ledger' | null = null;

  const check = async (): Promise<string> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(
        () => reject(new Error(`the database did not take a write within ${timeoutMs} ms`)),
        timeoutMs,
      );
    });
    let state = 'ok';
    let reason: unknown;
    try {
      await Promise.race([write().then(ledger), late]);
    } catch (error) {
      reason = error;
      state = words(error);
    } finally {
      clearTimeout(timer);
    }
    const before = problem;
    problem = state === 'ok' ? null : isOfLedger(reason) ? 'ledger' : 'database';
    if (problem !== before) onChange(problem, reason);
    result = { state, at: performance.now() };
    return state;
  };

  return async () => {
    if (performance.now() - result.at < keepMs) return result.state;
    running ??= check().finally(() => {
      running = null;
    });
    return running;
  };
}

/** The ledger alone refuses everything: other rows of the database can be written. */
const isOfLedger = (error: unknown): boolean =>
  error instanceof LedgerUnavailable || (error instanceof DatabaseError && error.code === LOST);

function words(error: unknown): string {
  if (error instanceof LedgerUnavailable) return 'has lost the log of the ledger: restart the gateway';
  if (!(error instanceof DatabaseError)) return 'takes no writes in time';
  if (error.code === LOST)
    return 'lacks operations that were acknowledged: bring back the database that has them, or restart the gateway, which says what is missing';
  if (error.full || FULL.has(error.code)) return 'cannot be written to: its disk is full';
  return READ_ONLY.test(error.code) ? 'cannot be written to: it is read-only' : 'cannot be reached or written to';
}
