import { createHash, hash } from 'node:crypto';
import type { Row } from '#store';
import type { Jwk } from '../receipt.ts';
import type { MovementTexts } from '../ledger/log-movements.ts';

/* The lines of an archive. Each is a JSON array that begins with its kind; amounts are decimal texts in micro-USD,
   times are epoch milliseconds. docs/reference/archive-format.md describes them for readers without this program. */

/** An archive cannot be made or is not right. `message` says why, for people. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

export const FORMAT = 1;

export interface ArchiveHeader {
  readonly format: typeof FORMAT;
  /** 1 for the first archive of a gateway. */
  readonly number: number;
  /** The archive has everything from here (0: the beginning) to before `ends_at`, which the archive before has not. */
  readonly begins_at: number;
  readonly ends_at: number;
  /** The archive before, and the digest of its content; null for the first. */
  readonly previous: { readonly name: string; readonly content: string } | null;
  /** The public key of the gateway that signed the receipts and the archive. */
  readonly key: Jwk;
}

/** A resolved call: the columns of its lock. Amounts are texts. */
export type ArchivedCall = Readonly<Record<string, string | number | null>>;
/** The parts of a receipt that the columns of its lock lack, and its signature. */
type ArchivedReceipt = readonly [account: string, primitive: string, signature: string];

/** A movement of a call that is open at the end: chain, number of the group, position in it, the movement, its time. */
export type LeftMovement = readonly [
  chain: string,
  batch: number,
  position: number,
  movement: MovementTexts,
  at: number,
];

/** How the movements of a group are written: a record of the embedded log, a group of PostgreSQL, or rows (old). */
export type GroupForm = 'log' | 'group' | 'rows';

export type ArchiveLine =
  | readonly [kind: 'archive', header: ArchiveHeader]
  | readonly [kind: 'opening' | 'closing', account: string, available: string, locked: string]
  | readonly [kind: 'carried' | 'left', ...LeftMovement]
  | readonly [kind: 'from' | 'to', chain: string, n: number, hash: string, position: number]
  | readonly [
      kind: 'group',
      form: GroupForm,
      chain: string,
      n: number,
      at: number,
      count: number,
      hash: string,
      payload: string,
    ]
  | readonly [kind: 'price', id: string, provider: string, service: string, rates: string]
  | readonly [kind: 'call', call: ArchivedCall, receipt: ArchivedReceipt | null]
  | readonly [kind: 'transfer', id: string, from: string, to: string, amount: string, memo: string, at: number]
  | readonly [kind: 'kept', id: string]
  | readonly [kind: 'seal', jws: string];

export const lineText = (line: ArchiveLine): string => JSON.stringify(line);

/** s: text, z: text or null, n: number, a: amount, o: object, m: movement */
const SHAPES: Readonly<Record<ArchiveLine[0], string>> = {
  archive: 'o',
  opening: 'saa',
  closing: 'saa',
  carried: 'snnmn',
  left: 'snnmn',
  from: 'snsn',
  to: 'snsn',
  group: 'ssnnnss',
  price: 'ssss',
  call: 'or',
  transfer: 'sssasn',
  kept: 's',
  seal: 's',
};
const AMOUNT = /^-?\d{1,19}$/;
const isText = (value: unknown) => typeof value === 'string';
const isAmount = (value: unknown) => typeof value === 'string' && AMOUNT.test(value);
const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);

const IS: Readonly<Record<string, (value: unknown) => boolean>> = {
  s: isText,
  z: (value) => value === null || isText(value),
  n: Number.isSafeInteger,
  a: isAmount,
  o: isObject,
  r: (value) => value === null || hasShape(value, 'sss'),
  m: (value) => hasShape(value, 'ssszaaaaz'),
};

function hasShape(value: unknown, shape: string): boolean {
  return Array.isArray(value) && value.length === shape.length && value.every((one, index) => IS[shape[index]!]!(one));
}

const COLUMNS: Readonly<Record<string, string>> = {
  id: 's',
  account: 's',
  amount: 'a',
  parent: 'z',
  depth: 'n',
  lendable: 'a',
  lent: 'a',
  kept: 'n',
  prices: 's',
  budget: 'z',
  state: 's',
  price: 'z',
  provider: 'z',
  charged: 'a',
  fee: 'a',
  fee_bps: 'n?',
  drawn: 'a',
  shortfall: 'a',
  created_at: 'n',
  expires_at: 'n',
  resolved_at: 'n',
  lock_detail: 's',
  usage: 'z',
  detail: 'z',
};

const isColumn = (value: unknown, shape: string): boolean =>
  shape.endsWith('?') ? value === null || IS[shape[0]!]!(value) : IS[shape]!(value);

/** Parses a line of a file that anybody may have made. Throws ArchiveError. */
export function parseLine(text: string, number: number): ArchiveLine {
  const wrong = (what: string) => new ArchiveError(`line ${number} ${what}`);
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    throw wrong('is not JSON');
  }
  if (!Array.isArray(line)) throw wrong('is not a line of an archive');
  const [kind, ...fields] = line as readonly unknown[];
  const shape = typeof kind === 'string' && Object.hasOwn(SHAPES, kind) ? SHAPES[kind as ArchiveLine[0]] : undefined;
  if (shape === undefined) throw wrong('is of a kind that this version does not know');
  if (!hasShape(fields, shape)) throw wrong(`("${kind as string}") does not have the fields that it must have`);
  if (
    kind === 'call' &&
    !Object.entries(COLUMNS).every(([name, is]) => isColumn((fields[0] as Readonly<Record<string, unknown>>)[name], is))
  )
    throw wrong('is a call without the columns that it must have');
  return line as unknown as ArchiveLine;
}

export function callOf(row: Row): ArchivedCall {
  const value = (name: string) => {
    const cell = row[name] as string | bigint | null;
    return typeof cell !== 'bigint' ? cell : COLUMNS[name] === 'a' ? `${cell}` : Number(cell);
  };
  return Object.fromEntries(Object.keys(COLUMNS).map((name) => [name, value(name)]));
}

export function rowOfCall(call: ArchivedCall): Row {
  const value = (name: string) => {
    const column = call[name]!;
    return column === null || (COLUMNS[name] !== 'a' && typeof column === 'string') ? column : BigInt(column);
  };
  return Object.fromEntries(Object.keys(COLUMNS).map((name) => [name, value(name)]));
}

/**
 * A digest of a set of texts, whatever their order, because the databases order texts differently: sha256 over the
 * sorted digests of all of them. It keeps 32 bytes for each.
 */
export class SetDigest {
  readonly #digests: Buffer[] = [];

  add(...fields: readonly (string | number | bigint | null)[]): void {
    const text = JSON.stringify(fields.map((field) => (typeof field === 'bigint' ? `${field}` : field)));
    this.#digests.push(hash('sha256', text, 'buffer'));
  }

  digest(): string {
    const all = createHash('sha256');
    for (const one of this.#digests.sort(Buffer.compare)) all.update(one);
    return all.digest('hex');
  }
}
