import type { Caller } from '#accounts';
import type { Validity } from './message.ts';

/**
 * A cache of verified credentials, such as sign-in headers. Each stays until its validity ends, so that a repeated one
 * costs only a lookup.
 */
interface Verified<Found> {
  /** The caller of a header that was verified and is valid at `at`. Otherwise null. */
  get(header: string, at: number): Found | null;
  put(header: string, result: Found, validity: Validity): void;
}

interface VerifiedOptions {
  readonly countMax: number;
  readonly bytesMax: number;
}

/** Beyond the bounds, the oldest entries are dropped. */
export function createVerified<Found = Caller>({ countMax, bytesMax }: VerifiedOptions): Verified<Found> {
  const entries = new Map<string, { readonly value: Found; readonly validity: Validity }>();
  let bytes = 0;

  const drop = (header: string) => {
    if (entries.delete(header)) bytes -= header.length;
  };

  return {
    get(header, at) {
      const entry = entries.get(header);
      if (entry === undefined) return null;
      if (at >= entry.validity.from && at <= entry.validity.until) return entry.value;
      drop(header);
      return null;
    },

    put(header, result, validity) {
      drop(header);
      entries.set(header, { value: result, validity });
      // A header is ASCII, which takes one byte for each character.
      bytes += header.length;
      while (entries.size > countMax || bytes > bytesMax) drop(entries.keys().next().value!);
    },
  };
}
