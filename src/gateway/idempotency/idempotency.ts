import { hash } from 'node:crypto';
import { DatabaseError, loadStatement, type Database, type Step } from '#store';
import { GatewayError } from '#wire';
import type { Caller } from '../call.ts';
import { createKeptBytes } from './kept-bytes.ts';

/** One use of an idempotency key: keys are each account's own. */
interface IdempotentUse {
  readonly account: string;
  readonly key: string;
  readonly callId: string;
}

export interface StoredReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A reply as it was given. `body`: null for one that was too large to be held. */
export interface GivenReply extends Omit<StoredReply, 'body'> {
  readonly body: Uint8Array | null;
}

/**
 * The state of a key: `new` (run the call, then `finish` or `abandon`), a reply to repeat, one that was
 * given and is not kept, another body, a call that still runs, or one that was charged and whose reply was lost, as
 * its gateway died or could not keep it: running it again would charge it twice.
 */
export type Beginning =
  | { readonly kind: 'new' }
  | ({ readonly kind: 'replay' } & StoredReply)
  | { readonly kind: 'unkept'; readonly callId: string }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'running'; readonly callId: string | null }
  | { readonly kind: 'lost'; readonly callId: string };

export interface Idempotency {
  /**
   * Takes the key for this call in one atomic step, or tells what it stands for already. Rejects with GatewayError
   * `permission_denied` where it stands for a call of a service that is not among `allowedServices`; null, or
   * absent, is all of them.
   */
  begin(
    use: IdempotentUse & { readonly bodyHash: string; readonly allowedServices?: readonly string[] | null },
  ): Promise<Beginning>;
  /**
   * Keeps the reply for `ttlMs`; of one that is larger than KEPT_BYTES_MAX, that it was given. `charged`: a repeat
   * must never run. False when this call no longer holds the key.
   */
  finish(use: IdempotentUse, reply: GivenReply, charged: boolean): Promise<boolean>;
  /**
   * Frees the key of a call that had no effect, so that a retry runs; not that of a call which was charged or may
   * yet be. While the database is away, it is freed with the next sweep that reaches it.
   */
  abandon(use: IdempotentUse): Promise<void>;
  /**
   * Ends the time of all keys that are held by running calls. For the start of the only gateway on a database:
   * those calls died with the last one.
   */
  endRunning(): Promise<void>;
  /** Deletes what has outlived its time, at most `limit` rows; returns how many. */
  sweep(limit?: number): Promise<number>;
}

interface IdempotencyOptions {
  readonly now: () => number;
  /** How long a reply can be repeated. */
  readonly ttlMs?: number;
  /** About how many bytes are kept for one account; default 32 MiB. */
  readonly keptRepliesBytesMax?: number;
  /**
   * After this a call that never finished (its gateway died) no longer holds its key. Longer than any call may take.
   */
  readonly runningTtlMs: number;
}

/**
 * The largest reply that is kept. Each stays for a day, and what costs nothing could be called for the sake of that.
 */
export const KEPT_BYTES_MAX = { charged: 1024 * 1024, free: 64 * 1024 } as const;

const DAY_MS = 86_400_000;
const ACCOUNT_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes of a row beside its headers and its reply. */
const ROW_BYTES = 512;
const ATTEMPTS = 3;
/** Beyond these, keys wait for the end of their time. */
const TO_FREE_MAX = 10_000;

const TAKE = loadStatement(import.meta.url, './sql/take-idempotency.sql');
const BEGIN = loadStatement(import.meta.url, './sql/begin-idempotency.sql');
const FIND = loadStatement(import.meta.url, './sql/find-idempotency.sql');
const SERVICES = loadStatement(import.meta.url, './sql/find-called-names.sql');
const FINISH = loadStatement(import.meta.url, './sql/finish-idempotency.sql');
const ABANDON = loadStatement(import.meta.url, './sql/abandon-idempotency.sql');
const END_RUNNING = loadStatement(import.meta.url, './sql/end-running-idempotency.sql');
const FORGET_FREE = loadStatement(import.meta.url, './sql/forget-free-replies.sql');
const FORGET_CHARGED = loadStatement(import.meta.url, './sql/forget-charged-replies.sql');
const SWEEP = loadStatement(import.meta.url, './sql/sweep-idempotency.sql');

/**
 * Idempotency keys in the database, for all gateways that share it. Rejects with the database's error when it
 * cannot be reached.
 */
export function createIdempotency(database: Database, options: IdempotencyOptions): Idempotency {
  const { now, ttlMs = DAY_MS, runningTtlMs, keptRepliesBytesMax = ACCOUNT_BYTES_MAX } = options;
  const keptBytes = createKeptBytes(keptRepliesBytesMax);
  /**
   * Keys that could not be freed: their clients were told to retry, and would get 409 until the rows outlive their
   * time.
   */
  const toFree = new Set<IdempotentUse>();
  const free = ({ account, key, callId }: IdempotentUse) => database.query(ABANDON, [account, key, callId]);

  /**
   * The services that the reply of a call was made of. Calls of an agent do not count; tools of a model are named by
   * the request itself.
   */
  const servicesOf = async (callId: string): Promise<readonly string[]> => {
    const rows = await database.query(SERVICES, [callId]);
    const details = rows.map((row) => ({
      own: row['id'] === callId,
      ...(JSON.parse(row['lock_detail'] as string) as CallDetail),
    }));
    const isRun = details.some(({ own, primitive }) => own && primitive === 'model');
    return details.filter(({ own }) => own || isRun).map(({ service }) => service);
  };

  return {
    async begin({ account, key, bodyHash, callId, allowedServices = null }) {
      // Between two statements the holder may have given the key back: then there is neither a new row nor an old one,
      // so try again.
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const at = now();
        const params = [account, key, bodyHash, callId, at, at + runningTtlMs];
        // Nearly every key is a new one.
        if ((await database.query(TAKE, params)).length > 0) return { kind: 'new' };
        const [taken, found] = await database.batch([
          { statement: BEGIN, params },
          { statement: FIND, params: [account, key] },
        ]);
        if (taken?.length) return { kind: 'new' };
        const row = found?.[0];
        if (!row) continue;
        if (row['body_hash'] !== bodyHash) return { kind: 'conflict' };
        if (allowedServices !== null) refuseOthers(allowedServices, await servicesOf(row['call_id'] as string));
        if (row['state'] === 'running')
          return { kind: (row['expires_at'] as bigint) > at ? 'running' : 'lost', callId: row['call_id'] as string };
        if (row['body'] === null) return { kind: 'unkept', callId: row['call_id'] as string };
        return {
          kind: 'replay',
          status: Number(row['status']),
          headers: JSON.parse(row['headers'] as string) as Record<string, string>,
          body: bytesOf(row['body'] as Uint8Array),
        };
      }
      return { kind: 'running', callId: null };
    },

    async finish({ account, key, callId }, { status, headers, body }, charged) {
      const kept = body !== null && body.byteLength <= KEPT_BYTES_MAX[charged ? 'charged' : 'free'];
      const text = kept ? JSON.stringify(headers) : '{}';
      // A key without a reply that stands for money is as small as the record of the money.
      const bytes = kept ? ROW_BYTES + text.length + body.byteLength : charged ? 0 : ROW_BYTES;
      const params = [account, key, callId, status, text, kept ? body : null, charged ? 1 : 0, bytes, now() + ttlMs];
      const steps: Step[] = [{ statement: FINISH, params }];
      if (keptBytes.add(account, bytes))
        for (const statement of [FORGET_FREE, FORGET_CHARGED])
          steps.push({ statement, params: [account, keptRepliesBytesMax] });
      const [rows] = await database.batch(steps);
      return rows!.length > 0;
    },

    async abandon(use) {
      try {
        await free(use);
      } catch (error) {
        if (!(error instanceof DatabaseError && error.unavailable)) throw error;
        if (toFree.size < TO_FREE_MAX) toFree.add(use);
      }
    },

    async endRunning() {
      await database.query(END_RUNNING, [now()]);
    },

    async sweep(limit = 1_000) {
      for (const use of toFree) {
        await free(use);
        toFree.delete(use);
      }
      const at = now();
      return (await database.query(SWEEP, [at, limit, at - ttlMs])).length;
    },
  };
}

/** The part of a lock's detail that says what is called. */
interface CallDetail {
  readonly primitive: string;
  readonly service: string;
}

/**
 * A key that is limited to some services gets no reply of others, whichever key of the account they were called
 * with. A reply that is of no call is not for it.
 */
function refuseOthers(allowed: readonly string[], services: readonly string[]): void {
  const other = services.find((service) => !allowed.includes(service));
  if (services.length > 0 && other === undefined) return;
  throw new GatewayError(
    'permission_denied',
    `This API key may not use ${other ?? 'what this idempotency key was used for'}. It is limited to: ${allowed.slice(0, 20).join(', ')}`,
    { param: 'Idempotency-Key' },
  );
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength);

/** A key as a client sent it: 1 to 255 printable ASCII characters. Throws GatewayError `invalid_request`. */
export function parseIdempotencyKey(value: unknown): string {
  if (typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value)) return value;
  throw new GatewayError('invalid_request', 'An idempotency key has 1 to 255 printable ASCII characters', {
    param: 'Idempotency-Key',
  });
}

/**
 * The key as it is kept of a caller: those who act under a running call have their own, so that an agent neither
 * sees what its consumer was answered nor takes the keys that its consumer will use.
 */
export function ownIdempotencyKey({ run }: Pick<Caller, 'run'>, key: string): string {
  return run === undefined ? key : `run ${hash('sha256', JSON.stringify([run.parent, key])).slice(0, 40)}`;
}

/** The error of a key that is taken: 409 `idempotency_conflict`, with Retry-After while its first call runs. */
export function idempotencyError(kind: 'conflict' | 'running' | 'lost' | 'unkept'): GatewayError {
  if (kind === 'unkept') {
    return new GatewayError(
      'idempotency_conflict',
      'The first request with this idempotency key was answered, and charged at most once, but its reply is not kept: it was too large, or newer replies took its place. Use a new key to run it again',
      { param: 'Idempotency-Key', headers: { 'idempotent-replayed': 'true' } },
    );
  }
  if (kind === 'lost') {
    return new GatewayError(
      'idempotency_conflict',
      'The first request with this idempotency key was charged once, but its reply was lost: use a new key to run it again, or, where a payment took the place of a key, sign in with the wallet or pay anew',
      { param: 'Idempotency-Key' },
    );
  }
  if (kind === 'conflict') {
    return new GatewayError(
      'idempotency_conflict',
      'This idempotency key was used with another request body: use a new key for a new request',
      {
        param: 'Idempotency-Key',
      },
    );
  }
  return new GatewayError(
    'idempotency_conflict',
    'The first request with this idempotency key is still running: retry later',
    {
      param: 'Idempotency-Key',
      retryAfterS: 1,
    },
  );
}
