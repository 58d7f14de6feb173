export type Level = 'confirmed' | 'finalized';

/** A moment of the chain. Not every slot has a block, and age is counted in blocks. */
export interface Moment {
  readonly slot: bigint;
  readonly height: bigint;
}

/** The status of a transaction, as of `slot`. */
export interface SignatureStatus {
  readonly slot: bigint;
  readonly inclusion: {
    readonly slot: bigint;
    readonly failed: string | null;
    readonly level: 'processed' | Level;
  } | null;
}

export interface SignatureEntry {
  readonly signature: string;
  readonly slot: bigint;
  readonly failed: boolean;
}

export interface LatestBlockhash {
  readonly blockhash: string;
  readonly lastValidBlockHeight: bigint;
  readonly slot: bigint;
}

export interface SolanaAccount {
  readonly owner: string;
  readonly data: Uint8Array;
}

/** The value of an answer and its slot. */
export function inContext(answer: unknown): { readonly slot: bigint; readonly value: unknown } {
  const { context, value } = objectOf(answer, 'the answer');
  return { slot: natural(objectOf(context, 'its context')['slot'], 'the slot of its context'), value };
}

export function readBlockhash(answer: unknown): LatestBlockhash {
  const { slot, value } = inContext(answer);
  const { blockhash, lastValidBlockHeight } = objectOf(value, 'the answer');
  return {
    slot,
    blockhash: textOf(blockhash, 'a blockhash'),
    lastValidBlockHeight: natural(lastValidBlockHeight, 'a block height'),
  };
}

export function readAccount(answer: unknown): SolanaAccount | null {
  const { value } = inContext(answer);
  if (value === null) return null;
  const { owner, data } = objectOf(value, 'an account');
  const [base64] = listOf(data, 'its data', 2);
  return {
    owner: textOf(owner, 'its program'),
    data: Uint8Array.from(Buffer.from(textOf(base64, 'its data'), 'base64')),
  };
}

/** Reads the statuses of `count` signatures, in their order. */
export function readStatuses(answer: unknown, count: number): SignatureStatus[] {
  const { slot, value } = inContext(answer);
  const list = listOf(value, `a list of ${count} statuses`, count);
  if (list.length !== count) throw new Error(`${list.length} statuses for ${count} signatures`);
  return list.map((one) => readStatus(one, slot));
}

function readStatus(one: unknown, slot: bigint): SignatureStatus {
  if (one === null) return { slot, inclusion: null };
  const { slot: height, err, confirmationStatus } = objectOf(one, 'a status');
  if (confirmationStatus !== 'processed' && confirmationStatus !== 'confirmed' && confirmationStatus !== 'finalized')
    return invalid('a commitment level', confirmationStatus);
  return {
    slot,
    inclusion: { slot: natural(height, 'a slot'), failed: failureOf(err), level: confirmationStatus },
  };
}

/** Reads a list of at most `limit` transactions, the newest first. */
export function readSignatures(answer: unknown, level: Level, limit: number): SignatureEntry[] {
  let below: bigint | null = null;
  return listOf(answer, 'a list of transactions', limit).map((one) => {
    const { signature, slot, err, confirmationStatus } = objectOf(one, 'a transaction');
    const entry = {
      signature: textOf(signature, 'a signature'),
      slot: natural(slot, 'a slot'),
      failed: failureOf(err) !== null,
    };
    if (below !== null && entry.slot > below) throw new Error('it is not newest first');
    if (level === 'finalized' && confirmationStatus !== 'finalized')
      throw new Error('a transaction of it is not final');
    below = entry.slot;
    return entry;
  });
}

/** The chain's error of a transaction as text; null for none. Throws Error if the answer lacks the field. */
export function failureOf(err: unknown): string | null {
  if (err === undefined) throw new Error('it does not say whether it failed');
  if (err === null) return null;
  return JSON.stringify(err, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)).slice(0, 200);
}

/* These functions read the fields of a node's answer. The caller turns their errors into ChainUnavailable. */

export function invalid(expected: string, got: unknown): never {
  throw new Error(`${expected} was expected, not ${got === null ? 'null' : typeof got}`);
}

export function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : invalid(what, value);
}

export function listOf(value: unknown, what: string, max: number): readonly unknown[] {
  if (!Array.isArray(value)) return invalid(what, value);
  if (value.length > max) throw new Error(`${what} of at most ${max} was expected, not of ${value.length}`);
  return value as readonly unknown[];
}

export function textOf(value: unknown, what: string): string {
  return typeof value === 'string' ? value : invalid(what, value);
}

export function flag(value: unknown, what: string): boolean {
  return typeof value === 'boolean' ? value : invalid(what, value);
}

/** Reads a whole number of 0 or more. JSON numbers arrive as bigint or number, amounts as text. */
export function natural(value: unknown, what: string): bigint {
  if (typeof value === 'bigint' && value >= 0n) return value;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  if (typeof value === 'string' && /^\d{1,20}$/.test(value)) return BigInt(value);
  return invalid(what, value);
}

/** Reads an index into a list. It is below 256, because a message cannot have more accounts. */
export function indexOf(value: unknown, what: string): number {
  const index = natural(value, what);
  return index < 256n ? Number(index) : invalid(what, value);
}
