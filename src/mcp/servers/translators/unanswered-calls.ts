import { hash } from 'node:crypto';
import type { RequestId } from '#wire';
import type { LegacySession } from '../../request/session.ts';

/**
 * Ids of calls that ended here without the server's answer. The answer may still come, and servers send it to any later
 * request with the same id. A client would then get the work of the first call for the price of another, or for
 * nothing.
 */
interface UnansweredCalls {
  add(session: LegacySession, id: RequestId): void;
  /** Says why a request with this id must not be sent; null if it may be sent. */
  fault(session: LegacySession, id: RequestId): string | null;
}

/** Most unanswered calls of one session that are kept one by one. */
const UNANSWERED_MAX = 1_000;
/** Fewer ids of one counter are not worth a floor. */
const COUNTED_MIN = 10;

/** An id that a client has counted: a number, or a string that ends with one. */
interface Counted {
  /** The text before the number. The ids 1 and "1" are different. */
  readonly prefix: string;
  readonly count: number;
}

interface OfSession {
  /** Each kept id; null if it is not counted. */
  readonly kept: Map<string, Counted | null>;
  /** By prefix. Every id up to the floor counts as unanswered. Clients count upwards, so they never use one again. */
  readonly floors: Map<string, number>;
}

export function createUnansweredCalls(): UnansweredCalls {
  const unanswered = new WeakMap<LegacySession, OfSession>();
  return {
    add(session, id) {
      let of = unanswered.get(session);
      if (!of) unanswered.set(session, (of = { kept: new Map(), floors: new Map() }));
      of.kept.set(keyOf(id), countedOf(id));
      if (isFull(of)) raiseFloor(of);
    },
    fault(session, id) {
      const of = unanswered.get(session);
      if (!of) return null;
      if (of.kept.has(keyOf(id)))
        return 'A call with this id has no answer yet. Use a different id for each request of a session';
      const counted = countedOf(id);
      const floor = counted === null ? undefined : of.floors.get(counted.prefix);
      if (floor !== undefined && counted!.count <= floor)
        return `A call with this id may have no answer yet. Use an id above ${floor} for each further request of the session`;
      return isFull(of) ? 'Too many calls of this session have no answer. Open another session' : null;
    },
  };
}

const isFull = ({ kept, floors }: OfSession): boolean => kept.size + floors.size >= UNANSWERED_MAX;

/** Replaces the lower half of the counter with the most ids by a floor, if any counter has enough. */
function raiseFloor({ kept, floors }: OfSession): void {
  const counters = Map.groupBy(
    [...kept].flatMap(([key, counted]) => (counted === null ? [] : [{ key, ...counted }])),
    ({ prefix }) => prefix,
  );
  const [prefix, ids] = [...counters].reduce((most, one) => (one[1].length > most[1].length ? one : most), ['', []]);
  if (ids.length < COUNTED_MIN) return;
  const lower = ids.toSorted((a, b) => a.count - b.count).slice(0, Math.ceil(ids.length / 2));
  for (const { key } of lower) kept.delete(key);
  floors.set(prefix, Math.max(lower.at(-1)!.count, floors.get(prefix) ?? -Infinity));
}

/** A long id is stored as a digest, because it is kept as long as the session. */
function keyOf(id: RequestId): string {
  const text = JSON.stringify(id);
  return text.length <= ID_CHARS_MAX ? text : hash('sha256', text);
}

const ID_CHARS_MAX = 128;
/** So many digits are an exact number. */
const COUNT_AT_END = /^(.*?)(\d{1,15})$/s;

function countedOf(id: RequestId): Counted | null {
  if (typeof id === 'number') return { prefix: '', count: id };
  const [, prefix, digits] = (id.length <= ID_CHARS_MAX && COUNT_AT_END.exec(id)) || [];
  return digits === undefined ? null : { prefix: `"${prefix}`, count: Number(digits) };
}
