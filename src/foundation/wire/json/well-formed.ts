const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const LETTER_D = 0x64;
const LOWER_CASE = 0x20;
/** Length of an escape such as \ud83d. */
const ESCAPE_BYTES = 6;

/**
 * Decodes JSON bytes and replaces each escaped lone surrogate with U+FFFD, as UTF-8 encoders do. Clients that cut a
 * text in the middle of an emoji send lone surrogates, and some servers answer them with an error. All positions stay
 * the same.
 */
export function wellFormedText(json: Buffer): string {
  const text = json.toString('utf8');
  if (!text.includes('\\u') || !/\\u[dD]/.test(text)) return text;
  const halves = new Halves(json);
  halves.repair(json.length);
  return halves.json === json ? text : halves.json.toString('utf8');
}

/** Replaces escaped lone surrogates in JSON bytes, piece by piece. */
export class Halves {
  /** The given bytes. It becomes a copy at the first replacement. */
  json: Buffer;
  readonly #source: Buffer;
  #at: number;

  constructor(json: Buffer) {
    this.json = json;
    this.#source = json;
    this.#at = json.indexOf(BACKSLASH);
    if (this.#at === -1) this.#at = json.length;
  }

  /** Checks about `bytes` more bytes. Returns true at the end. */
  repair(bytes: number): boolean {
    const json = this.#source;
    const until = Math.min(json.length, this.#at + bytes);
    let i = this.#at;
    while (i < until) {
      if (json[i] !== BACKSLASH) {
        i = plainUntil(json, i, until);
      } else if (json[i + 1] !== LETTER_U) i += 2;
      else {
        const half = halfAt(json, i);
        if (half === 'high' && halfAt(json, i + ESCAPE_BYTES) === 'low') i += ESCAPE_BYTES;
        else if (half !== null) {
          if (this.json === json) this.json = Buffer.from(json);
          this.json.write('fffd', i + 2, 'latin1');
        }
        i += ESCAPE_BYTES;
      }
    }
    this.#at = i;
    return i >= json.length;
  }
}

/** Bytes that are checked one by one before the native search is used. */
const NEAR = 32;

/** The index of the next backslash. Without a backslash before `until`, any index from `until` on. */
function plainUntil(json: Buffer, from: number, until: number): number {
  const near = Math.min(from + NEAR, until);
  for (let i = from; i < near; i++) if (json[i] === BACKSLASH) return i;
  if (near === until) return until;
  const next = json.indexOf(BACKSLASH, near);
  return next === -1 ? json.length : next;
}

/** Which half of a surrogate pair is escaped at `at`; null for anything else. */
function halfAt(json: Buffer, at: number): 'high' | 'low' | null {
  if (json[at] !== BACKSLASH || json[at + 1] !== LETTER_U || (json[at + 2]! | LOWER_CASE) !== LETTER_D) return null;
  const second = hexAt(json, at + 3);
  if (second < 8 || hexAt(json, at + 4) === -1 || hexAt(json, at + 5) === -1) return null;
  return second < 12 ? 'high' : 'low';
}

function hexAt(json: Buffer, at: number): number {
  const byte = json[at] ?? 0;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | LOWER_CASE;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
