import { createHash } from 'node:crypto';
import type { Row } from '#store';
import { DAY_MS } from './day-range.ts';

/** The accounts of calls that the gateway makes for itself, and of callers without a credential. */
const NOBODY: ReadonlySet<string> = new Set(['tollgate:gateway', 'tollgate:anonymous']);
/** The development account. */
export const DEVELOPMENT = 'tollgate:local:dev';

/** A resolved call, as far as it is counted. Texts that are not known are empty. */
export interface CallFacts {
  /** Days since 1970-01-01, of the resolution. */
  readonly day: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly account: string;
  readonly isDevelopment: boolean;
  /** Hash of the key. */
  readonly key: string;
  readonly primitive: string;
  readonly service: string;
  readonly provider: string;
  /** It was settled; else nothing was charged. */
  readonly isSettled: boolean;
  readonly charged: bigint;
  readonly fee: bigint;
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly cached: number;
  readonly images: number;
  readonly seconds: number;
  /** Milliseconds; 0 if unknown. */
  readonly firstByteMs: number;
  readonly durationMs: number;
}

/** How a service can be called beside its name: at one provider, or with a wish for the choice of one. */
const PIN = /^(?:0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}):/;
const WISH = /:(?:floor|nitro)$/;

/** The name of a service that was called in any form. */
const nameOf = (called: string): string => called.replace(PIN, '').replace(WISH, '');

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads a resolved lock. null for what is no call of somebody: the lock of a run of calls, a lock whose call went on
 * under another one, and calls that the gateway makes for itself.
 */
export function readCall(row: Row): CallFacts | null {
  const account = row['account'] as string;
  if (NOBODY.has(account)) return null;
  const call = fieldsOf(row['lock_detail'] as string);
  if (call['run'] === true) return null;
  const run = fieldsOf(row['detail'] as string | null);
  if (run['outcome'] === 'continued') return null;
  const usage = fieldsOf(row['usage'] as string | null);
  const at = Number(row['resolved_at']);
  const primitive = textOf(call['primitive']);
  return {
    day: Math.floor(at / DAY_MS),
    at,
    account,
    isDevelopment: account === DEVELOPMENT,
    key: textOf(call['key']),
    primitive,
    service: textOf(run['service']) || nameOf(textOf(call['service'])),
    provider: (row['provider'] as string | null) ?? '',
    isSettled: row['state'] === 'settled',
    charged: row['charged'] as bigint,
    fee: row['fee'] as bigint,
    // Tokens of a cache that have a price of their own are counted apart by billing.
    prompt: countOf(usage['prompt']) + countOf(usage['input_cache_read']) + countOf(usage['input_cache_write']),
    completion: countOf(usage['completion']),
    reasoning: countOf(run['reasoning']),
    cached: countOf(run['cached']),
    // A model has images in its prompt; those are not made.
    images: primitive === 'image' ? countOf(usage['image']) : 0,
    seconds: countOf(usage['second']),
    firstByteMs: countOf(run['firstByteMs']),
    durationMs: countOf(run['durationMs']),
  };
}

const WALLET = /^(?:solana|eip155):/;

/** True for an account that is a wallet. */
export const isWallet = (account: string): boolean => WALLET.test(account);

/** 8 bytes of the hash of an account: enough to tell accounts apart, and no name. */
export const hashOf = (account: string): bigint => createHash('sha256').update(account).digest().readBigInt64BE();

/** The hash of the development account. */
export const DEVELOPMENT_HASH = hashOf(DEVELOPMENT);

function fieldsOf(json: string | null): Fields {
  if (json === null || json === '') return {};
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(Math.round(value)) && value > 0 ? Math.round(value) : 0;
