import { type EventForm, findRun, type FoundRun } from './event-runs.ts';
import { roomOf, type OutputTally } from './output-tally.ts';

const FORMS_MAX = 4;
/**
 * Learning costs about ten times a parse. So for a stream whose forms keep changing, the gateway soon stops learning
 * and only parses.
 */
const LEARN_CREDIT = 8;
const EVENTS_PER_CREDIT = 16;
/**
 * The form of a longer event is not learned, because learning may parse the event up to nine times in one turn of
 * the event loop.
 */
const EVENT_CHARS_MAX = 4096;

/** The forms of events that a stream has shown. Events of a known form are not parsed. */
export interface EventForms<F extends EventForm> {
  /** Events that were taken. */
  readonly events: number;
  /**
   * Writes and counts the events that begin with the data at `start`, as long as they have one known form and their
   * texts fit into the budget. Returns the place after them. If the first event has to be parsed, it writes nothing
   * and returns `start`. `framed`: see findRun.
   */
  take(bytes: Buffer, start: number, end: number, framed: boolean): number;
  /** Learns the form of an event that JSON.parse accepts. `form` returns null if the form cannot be learned. */
  learn(text: string, form: () => F | null): void;
  forget(): void;
}

/** `write` writes the run that begins at `start` of `bytes`. */
export function createEventForms<F extends EventForm>(
  tally: OutputTally,
  write: (form: F, run: FoundRun, bytes: Buffer, start: number, framed: boolean) => void,
): EventForms<F> {
  const forms: F[] = [];
  let credit = LEARN_CREDIT;
  let events = 0;
  let latest: F | null = null;
  /**
   * How many events in a row had the latest form. The next search looks for as many again at once. So forms that
   * alternate cost no more.
   */
  let row = 0;

  function find(form: F, bytes: Buffer, start: number, end: number, framed: boolean): FoundRun | null {
    if (form !== latest) row = 0;
    const room = roomOf(tally);
    const found = findRun(form, bytes, start, end, framed, framed ? 1 + row : 1, room);
    if (found !== null || row === 0) return found;
    row = 0;
    return findRun(form, bytes, start, end, framed, 1, room);
  }

  return {
    get events() {
      return events;
    },
    take(bytes, start, end, framed) {
      for (let i = 0; i < forms.length; i++) {
        const form = forms[i]!;
        const run = find(form, bytes, start, end, framed);
        if (run === null) continue;
        write(form, run, bytes, start, framed);
        latest = form;
        if (i > 0) forms.unshift(...forms.splice(i, 1));
        row += run.events;
        tally.bytes += run.bytes;
        tally.discount += run.discount;
        const earned = Math.floor((events + run.events) / EVENTS_PER_CREDIT) - Math.floor(events / EVENTS_PER_CREDIT);
        credit = Math.min(LEARN_CREDIT, credit + earned);
        events += run.events;
        return run.end;
      }
      return start;
    },
    learn(text, formOf) {
      if (text.length > EVENT_CHARS_MAX || credit === 0) return;
      // Also if nothing is learned, because the search costs as much.
      credit--;
      const form = formOf();
      if (form !== null && forms.unshift(form) > FORMS_MAX) forms.pop();
    },
    forget() {
      forms.length = 0;
    },
  };
}
