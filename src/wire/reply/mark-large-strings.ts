import { outlineInTurns } from './long-strings.ts';
import type { LargeStrings } from './marked-text.ts';
import { ownTurn } from './own-turn.ts';

/** Shorter strings stay in the text. */
const LARGE_BYTES = 64 * 1024;
/** Bytes that are checked in one turn of the event loop: about half a millisecond. */
const TURN_BYTES = 512 * 1024;

/**
 * A JSON text with a mark instead of each large string, so that no more than the rest has to be parsed. A string with
 * an escape, or with characters other than those of ASCII, stays: it would have to be parsed to see that it is valid.
 * Files are in base64, which has neither. Rejects with UpstreamFailure for a string without an end.
 */
export async function markLargeStrings(json: Buffer, strings: LargeStrings): Promise<Buffer> {
  return (await inTurns(outlineInTurns(json, LARGE_BYTES, { isTaken: isPlain, markOf: (one) => strings.mark(one) })))
    .json;
}

/** Runs work that yields between its pieces: each piece in its own turn of the event loop. */
export async function inTurns<T>(work: Generator<void, T, undefined>): Promise<T> {
  for (;;) {
    await ownTurn();
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** Bytes that may not stand in a JSON string, or that have to be decoded. */
const NOT_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) => Number(byte < 0x20 || byte > 0x7e || byte === 0x5c));

function* isPlain(bytes: Buffer): Generator<void, boolean, undefined> {
  for (let at = 0; at < bytes.length; at += TURN_BYTES) {
    if (at > 0) yield;
    const end = Math.min(bytes.length, at + TURN_BYTES);
    let other = 0;
    for (let i = at; i < end; i++) other |= NOT_PLAIN[bytes[i]!]!;
    if (other !== 0) return false;
  }
  return true;
}
