import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const PRINTABLE = /^[\x20-\x7e]{1,128}$/;
/** The latest of our own: digits of base 36 behind a prefix of this process, which are counted in place. */
const own = Buffer.from(`req-${randomBytes(8).toString('hex')}00000000`);
const [ZERO, NINE, A, Z] = [0x30, 0x39, 0x61, 0x7a];

function nextOwn(): string {
  for (let at = own.length - 1; ; at--) {
    const digit = own[at]!;
    own[at] = digit === NINE ? A : digit === Z ? ZERO : digit + 1;
    // A text in one piece: V8 writes an object with a concatenated one in it to JSON at half the speed.
    if (digit !== Z) return own.toString('latin1');
  }
}

/** The caller's `x-request-id` when it is 1 to 128 printable characters, else one of ours. */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && PRINTABLE.test(given) ? given : nextOwn();
}
