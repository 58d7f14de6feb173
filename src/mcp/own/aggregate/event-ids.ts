import type { Recording } from '../../call/replays.ts';

/** At the beginning of a line; every other end of a line than these may stand in data. */
const ID = /(^|[\r\n])id:( ?)/g;

/**
 * An answer in which ids of events begin with `tag`: those of several servers are the same ones, and a client goes
 * on with a stream by its last id alone.
 */
export function withEventIds(answer: Recording, tag: string): Recording {
  return {
    get resumable() {
      return answer.resumable;
    },
    events(bytes) {
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
      const tagged = text.includes('id:') ? text.replace(ID, `$1id:$2${tag}.`) : text;
      return answer.events(tagged === text ? bytes : Buffer.from(tagged));
    },
    end: (text, status, headers, eventId) => answer.end(text, status, headers, eventId ? `${tag}.${eventId}` : null),
    close: () => answer.close(),
  };
}
