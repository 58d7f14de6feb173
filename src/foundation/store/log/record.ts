import { hash } from 'node:crypto';

/** The previous hash of the first record of a chain. */
export const GENESIS = '0'.repeat(64);

/** A position in the log: record `n` with this hash ends at `position`, in bytes from the beginning of the log. */
export interface LogHead {
  readonly position: number;
  readonly n: number;
  readonly hash: string;
}

export interface LogRecord extends LogHead {
  /** Hash of the previous record. */
  readonly prev: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** One JSON array, with one entry per line. */
  readonly payload: string;
}

/** Bytes in which every header fits. */
const HEADER_MAX = 320;
/** Most records fit in so many bytes. */
const SMALL_RECORD = 256 * 1024;
export const LINE_END = 0x0a;
/** The beginning of every header. */
export const OPENING = '{"n":';

/** The text that is hashed before the payload. */
const hashedBefore = (prev: string, n: number, at: number): string => `${prev}\n[${n},${at}]\n`;

/** sha256 over the previous hash, the number and time, and the payload. */
const hashOf = (prev: string, n: number, at: number, payload: string | Uint8Array): string =>
  typeof payload === 'string'
    ? hash('sha256', hashedBefore(prev, n, at) + payload)
    : hash('sha256', Buffer.concat([Buffer.from(hashedBefore(prev, n, at)), payload]));

/**
 * Makes the bytes of records. A record is a header line with its number, its time, the length of its payload and both
 * hashes, followed by the payload.
 */
export class RecordEncoder {
  /** The payload begins at HEADER_MAX. Its hash and the header need other bytes before it. */
  #bytes = Buffer.allocUnsafeSlow(SMALL_RECORD);

  /** The record that follows `head`, and the new head. The bytes are valid until the next call. */
  encode(head: LogHead, at: number, payload: string): { bytes: Buffer; head: LogHead } {
    const n = head.n + 1;
    // A UTF-16 unit has at most three bytes in UTF-8.
    let bytes = this.#bytes;
    if (HEADER_MAX + payload.length * 3 > bytes.byteLength) {
      const length = Buffer.byteLength(payload);
      if (HEADER_MAX + length > bytes.byteLength) bytes = Buffer.allocUnsafeSlow(HEADER_MAX + length);
    }
    const end = HEADER_MAX + bytes.write(payload, HEADER_MAX, 'utf8');
    const before = (text: string): Buffer => {
      const begin = HEADER_MAX - text.length;
      bytes.write(text, begin, 'latin1');
      return bytes.subarray(begin, end);
    };
    const own = hash('sha256', before(hashedBefore(head.hash, n, at)));
    const record = before(
      `${OPENING}${n},"at":${at},"bytes":${end - HEADER_MAX},"prev":"${head.hash}","hash":"${own}"}\n`,
    );
    return { bytes: record, head: { position: head.position + record.byteLength, n, hash: own } };
  }
}

/**
 * The record that begins at `offset` of `bytes`; null if no complete, valid record begins there. `position` is the
 * position of that byte in the log. `trusted` skips the check of the hash.
 */
export function decodeRecord(bytes: Buffer, offset: number, position: number, trusted = false): LogRecord | null {
  const lineEnd = bytes.subarray(offset, offset + HEADER_MAX).indexOf(LINE_END);
  if (lineEnd < 0) return null;
  const header = parseHeader(bytes.toString('latin1', offset, offset + lineEnd));
  if (header === null) return null;
  const begin = offset + lineEnd + 1;
  const end = begin + header.bytes;
  if (end > bytes.byteLength) return null;
  const payload = bytes.subarray(begin, end);
  const { n, at, prev } = header;
  if (!trusted && hashOf(prev, n, at, payload) !== header.hash) return null;
  return { position: position + (end - offset), n, at, prev, hash: header.hash, payload: payload.toString('utf8') };
}

/** True if the hash of a record is right. For records that were read with `trusted`. */
export const isIntact = ({ prev, n, at, payload, hash: own }: LogRecord): boolean =>
  hashOf(prev, n, at, payload) === own;

interface Header {
  readonly n: number;
  readonly at: number;
  readonly bytes: number;
  readonly prev: string;
  readonly hash: string;
}

function parseHeader(line: string): Header | null {
  if (!line.startsWith(OPENING)) return null;
  try {
    const header = JSON.parse(line) as Header;
    const { n, at, bytes, prev, hash: own } = header;
    const isWhole = [n, at, bytes].every(Number.isSafeInteger) && bytes >= 0;
    return isWhole && typeof prev === 'string' && typeof own === 'string' ? header : null;
  } catch {
    return null;
  }
}
