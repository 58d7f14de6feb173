import type { Recording } from '../../call/replays.ts';

/**
 * An id at the beginning of a line. Lines end only at CR and LF, because other line separators may be part of the data.
 */
const ID = /(^|[\r\n])id:( ?)/g;

/**
 * An answer in which the ids of events begin with `tag`. Several servers may use the same ids, but a client resumes a
 * stream with its last id alone.
 */
export function withEventIds(answer: Recording, tag: string): Recording {
  return {
    isResumable: () => answer.isResumable(),
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
