import type { Recording } from '../../call/replays.ts';

/** At the beginning of a line. Other line ends than these may stand in data. */
const ID = /(^|[\r\n])id:( ?)/g;

/**
 * An answer in which ids of events begin with `tag`: several servers give the same ids, and a client resumes a stream
 * by its last id alone.
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
    body: (asEvent) => answer.body(asEvent),
    close: () => answer.close(),
  };
}
