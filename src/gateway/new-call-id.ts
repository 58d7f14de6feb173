import { randomBytes } from 'node:crypto';

const idPrefix = `gen-${randomBytes(9).toString('base64url').replaceAll('-', 'A').replaceAll('_', 'B')}`;
let idCounter = 0;

/**
 * Unique over all processes: a random prefix per process and a counter, cheaper than a UUID a call. Joined, as V8
 * writes an object with a concatenated text in it to JSON at half the speed.
 */
export function newCallId(): string {
  return [idPrefix, (idCounter++).toString(36).padStart(6, '0')].join('');
}
