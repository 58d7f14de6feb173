import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const PRINTABLE = /^[\x20-\x7e]{1,128}$/;
const prefix = `req-${randomBytes(8).toString('hex')}`;
let counter = 0;

/** The caller's `x-request-id` when it is 1 to 128 printable characters, else one of ours. */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && PRINTABLE.test(given)
    ? given
    : // Joined, as V8 writes an object with a concatenated text in it to JSON at half the speed.
      [prefix, (counter++).toString(36).padStart(6, '0')].join('');
}
