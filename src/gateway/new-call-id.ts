import { randomBytes } from 'node:crypto';

const idPrefix = `gen-${randomBytes(9).toString('base64url').replaceAll('-', 'A').replaceAll('_', 'B')}`;
let idCounter = 0;

/**
 * An id that is unique over all processes: a random prefix for each process and a counter, which is cheaper than a UUID
 * for each call. It is built with join(), because V8 serialises objects with a concatenated string to JSON at half the
 * speed.
 */
export function newCallId(): string {
  return [idPrefix, (idCounter++).toString(36).padStart(6, '0')].join('');
}
