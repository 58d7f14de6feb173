import { hash } from 'node:crypto';
import { DatabaseError, loadStatements, type Database, type Step } from '#store';
import { GatewayError } from '#errors';
import type { Primitive } from '#config';
import type { Access, Caller } from '#accounts';
import { authorise } from './prepare.ts';

/** One use of an idempotency key, by its stored name. Each account has its own keys. See storedNames. */
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

/** A reply that was given to a client. `body`: null if it was too large to hold. */
export interface GivenReply extends Omit<StoredReply, 'body'> {
  readonly body: Uint8Array | null;
}

/**
 * The state of a key. `new`: run the call, then `finish` or `abandon`. `replay`: the reply to repeat. `unkept`: the
 * request was answered, but its reply is not kept. `conflict`: the key was used with another body. `running`: its call
 * still runs. `lost`: its call was charged or goes on as a task, but its reply was lost, because its gateway died or
 * could not keep it. Running such a call again would charge it twice.
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
   * Takes the key for this call in one atomic step, or returns the state of a key that is in use. Rejects with
   * GatewayError `permission_denied` if the key was used for something outside `access`. null or absent: all
   * services are allowed. `other`: see storedNames.
   */
  begin(
    use: IdempotentUse & {
      readonly bodyHash: string;
      readonly access?: Access | null;
      readonly other?: StoredNames['other'];
    },
  ): Promise<Beginning>;
  /**
   * Keeps the reply for `ttlMs`. For a reply larger than KEPT_BYTES_MAX, keeps only the fact that it was given.
   * `charged`: a repeat must never run. Resolves with false if this call no longer holds the key.
   */
  finish(use: IdempotentUse, reply: GivenReply, charged: boolean): Promise<boolean>;
  /**
   * Frees the key of a call that had no effect, so that a retry runs. The key of a call that may still be charged stays
   * as it is, and that of a call that was charged becomes `lost`. If the database is unavailable, a later sweep does
   * this.
   */
  abandon(use: IdempotentUse): Promise<void>;
  /**
   * Expires all keys of running calls. To be called when the only gateway of a database starts, because the calls of
   * the previous process have died with it.
   */
  endRunning(): Promise<void>;
  /** Deletes expired rows, at most `limit`; returns how many. */
  sweep(limit?: number): Promise<number>;
}

interface IdempotencyOptions {
  readonly now: () => number;
  /** How long a reply can be repeated, in milliseconds; default one day. */
  readonly ttlMs?: number;
  /** Approximate limit of the kept bytes for one account; default 32 MiB. */
  readonly keptRepliesBytesMax?: number;
  /**
   * After this time, in milliseconds, a call that never finished (because its gateway died) no longer holds its key. It
   * must be longer than the longest call.
   */
  readonly runningTtlMs: number;
}

/**
 * The largest replies that are kept, in bytes. Each stays for a day. The limit for free replies is lower, because
 * anybody could make free calls just to fill the storage.
 */
export const KEPT_BYTES_MAX = { charged: 1024 * 1024, free: 64 * 1024 } as const;

const DAY_MS = 86_400_000;
const ACCOUNT_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes of a row without its headers and its reply. */
const ROW_BYTES = 512;
const ATTEMPTS = 3;
/** Keys above this number are not remembered and wait for their expiry. */
const TO_FREE_MAX = 10_000;

const SQL = loadStatements(import.meta.url, './sql/idempotency.sql', [
  'takeIdempotency',
  'beginIdempotency',
  'findIdempotency',
  'findCalledNames',
  'finishIdempotency',
  'abandonIdempotency',
  'endChargedIdempotency',
  'endRunningIdempotency',
  'forgetFreeReplies',
  'forgetChargedReplies',
  'sweepIdempotency',
]);

/**
 * Idempotency keys in the database, for all gateways that share it. Rejects with the database's error if it is
 * unavailable.
 */
export function createIdempotency(database: Database, options: IdempotencyOptions): Idempotency {
  const { now, ttlMs = DAY_MS, runningTtlMs, keptRepliesBytesMax = ACCOUNT_BYTES_MAX } = options;
  const keptBytes = createKeptBytes(keptRepliesBytesMax);
  /** Keys that could not be freed. Their clients were told to retry, and would get 409 until the rows expire. */
  const toFree = new Set<IdempotentUse>();
  const free = async ({ account, key, callId }: IdempotentUse) => {
    await database.batch([
      { statement: SQL.abandonIdempotency, params: [account, key, callId] },
      { statement: SQL.endChargedIdempotency, params: [account, key, callId, now()] },
    ]);
  };

  const detailsOf = async (callId: string) =>
    (await database.query(SQL.findCalledNames, [callId])).map((row) => ({
      own: row['id'] === callId,
      ...(JSON.parse(row['lock_detail'] as string) as CallDetail),
    }));

  /**
   * The calls that contributed to the reply of a call. Calls that an agent made do not count. Tools of a model call
   * count, because the request itself names them.
   */
  const calledIn = async (callId: string): Promise<readonly CallDetail[]> => {
    const details = await detailsOf(callId);
    const isRun = details.some(({ own, primitive }) => own && primitive === 'model');
    return details.filter(({ own }) => own || isRun);
  };

  /** The row of the same key under its other name, if the same caller asked for it; null otherwise. */
  const underOtherName = async (account: string, { key, askedBy }: OtherName, at: number): Promise<Row | null> => {
    const row = (await database.query(SQL.findIdempotency, [account, key]))[0];
    if (!row || (row['expires_at'] as bigint) <= at) return null;
    if (askedBy === null) return row;
    const details = await detailsOf(row['call_id'] as string);
    return details.some(({ own, key: asker }) => own && asker === askedBy) ? row : null;
  };

  const beginningOf = async (row: Row, bodyHash: string, at: number, access: Access | null): Promise<Beginning> => {
    if (row['body_hash'] !== bodyHash) return { kind: 'conflict' };
    const isRunning = row['state'] === 'running' && (row['expires_at'] as bigint) > at;
    if (access !== null) {
      const called = await calledIn(row['call_id'] as string);
      // A call that costs nothing has no record while it runs. Its id is left out, as its service is not known.
      if (isRunning && called.length === 0) return { kind: 'running', callId: null };
      refuseOthers(access, called);
    }
    if (row['state'] === 'running') return { kind: isRunning ? 'running' : 'lost', callId: row['call_id'] as string };
    if (row['body'] === null) return { kind: 'unkept', callId: row['call_id'] as string };
    return {
      kind: 'replay',
      status: Number(row['status']),
      headers: JSON.parse(row['headers'] as string) as Record<string, string>,
      body: bytesOf(row['body'] as Uint8Array),
    };
  };

  return {
    async begin({ account, key, bodyHash, callId, access = null, other = null }) {
      // The holder may free the key between the two statements. Then neither a new nor an old row is found, so try
      // again.
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const at = now();
        const params = [account, key, bodyHash, callId, at, at + runningTtlMs];
        // Nearly every key is new, so the cheap statement comes first.
        if ((await database.query(SQL.takeIdempotency, [...params, other?.key ?? null])).length > 0)
          return { kind: 'new' };
        const before = other === null ? null : await underOtherName(account, other, at);
        if (before !== null) return beginningOf(before, bodyHash, at, access);
        const [takenRows, foundRows] = await database.batch([
          { statement: SQL.beginIdempotency, params },
          { statement: SQL.findIdempotency, params: [account, key] },
        ]);
        if (takenRows?.length) return { kind: 'new' };
        const row = foundRows?.[0];
        if (row) return beginningOf(row, bodyHash, at, access);
      }
      return { kind: 'running', callId: null };
    },

    async finish({ account, key, callId }, { status, headers, body }, charged) {
      const fits = body !== null && body.byteLength <= KEPT_BYTES_MAX[charged ? 'charged' : 'free'];
      const text = fits ? JSON.stringify(headers) : '{}';
      // A charged key without a reply counts as 0 bytes, because it is as small as the record of the charge itself.
      const bytes = fits ? ROW_BYTES + text.length + body.byteLength : charged ? 0 : ROW_BYTES;
      const params = [account, key, callId, status, text, fits ? body : null, charged ? 1 : 0, bytes, now() + ttlMs];
      const steps: Step[] = [{ statement: SQL.finishIdempotency, params }];
      if (keptBytes.add(account, bytes))
        for (const statement of [SQL.forgetFreeReplies, SQL.forgetChargedReplies])
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
      await database.query(SQL.endRunningIdempotency, [now()]);
    },

    async sweep(limit = 1_000) {
      for (const use of toFree) {
        await free(use);
        toFree.delete(use);
      }
      const at = now();
      return (await database.query(SQL.sweepIdempotency, [at, limit, at - ttlMs])).length;
    },
  };
}

/** The part of a lock's detail that names the called service, and the hash of the API key that asked. */
interface CallDetail {
  readonly primitive: Primitive;
  readonly service: string;
  readonly operation?: string;
  readonly key?: string | null;
}

type Row = Awaited<ReturnType<Database['query']>>[number];
type OtherName = NonNullable<StoredNames['other']>;

/**
 * Refuses a kept reply to an API key that is limited to other services, even if another key of the account made the
 * call. Also refuses a reply without a recorded call.
 */
function refuseOthers(access: Access, called: readonly CallDetail[]): void {
  for (const { primitive, service, operation } of called)
    authorise({ key: { access } }, primitive, service, operation ?? null, 'Idempotency-Key');
  if (called.length > 0) return;
  throw new GatewayError(
    'permission_denied',
    `This API key may not use what this idempotency key was used for. It is limited to: ${access}`,
    { param: 'Idempotency-Key' },
  );
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength);

/** Checks a client's idempotency key: 1 to 255 printable ASCII characters. Throws GatewayError `invalid_request`. */
export function parseIdempotencyKey(value: unknown): string {
  if (typeof value === 'string' && /^[\x20-\x7e]{1,255}$/.test(value)) return value;
  throw new GatewayError('invalid_request', 'An idempotency key has 1 to 255 printable ASCII characters', {
    param: 'Idempotency-Key',
  });
}

interface StoredNames {
  readonly key: string;
  /**
   * The name under which an API key asked before its restrictions were set or lifted, so that a repeat after such a
   * change is not charged again. `askedBy`: it counts only for a call that this API key (its hash) made; null: only
   * this API key uses the name. null: the caller has no other name.
   */
  readonly other: { readonly key: string; readonly askedBy: string | null } | null;
}

/**
 * The stored names of a caller's idempotency key. Callers without restrictions share the names of their account. A run
 * token and a restricted API key have their own names, so they cannot read replies that they did not ask for, and
 * cannot take keys that others of the account will use.
 */
export function storedNames({ run, key: callerKey }: Pick<Caller, 'run' | 'key'>, key: string): StoredNames {
  if (run !== undefined) return { key: ownName('run', run.parent, key), other: null };
  if (callerKey === null) return { key, other: null };
  const own = ownName('key', callerKey.hash, key);
  return callerKey.restricted
    ? { key: own, other: { key, askedBy: callerKey.hash } }
    : { key, other: { key: own, askedBy: null } };
}

const ownName = (kind: string, owner: string, key: string): string =>
  `${kind} ${hash('sha256', JSON.stringify([owner, key])).slice(0, 40)}`;

/** The error for a key that is in use: 409 `idempotency_conflict`, with Retry-After while its first call runs. */
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
      'The first request with this idempotency key was charged once, but its reply was lost. Use a new key to run it again. If you paid without a key, sign in with the wallet or make a new payment',
      { param: 'Idempotency-Key' },
    );
  }
  if (kind === 'conflict') {
    return new GatewayError(
      'idempotency_conflict',
      'This idempotency key was used with another request body, or at another address (below /v1 instead of /api/v1, or the reverse): use a new key for a new request',
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

/**
 * Decides when to check whether an account keeps more than allowed. The check reads everything that the account keeps,
 * so it does not run after each reply.
 */
interface KeptBytes {
  /** Counts bytes that were kept for an account. Returns true if it is time to check. */
  add(account: string, bytes: number): boolean;
}

/** The check is due after new bytes of 1 / PART of the limit. */
const PART = 8;
const ACCOUNTS_MAX = 10_000;

export function createKeptBytes(max: number): KeptBytes {
  const added = new Map<string, number>();
  return {
    add(account, bytes) {
      const sum = (added.get(account) ?? 0) + bytes;
      // If too many accounts are counted already, this account is checked early instead of being added.
      if (sum * PART < max && (added.size < ACCOUNTS_MAX || added.has(account))) {
        added.set(account, sum);
        return false;
      }
      added.delete(account);
      return true;
    },
  };
}
