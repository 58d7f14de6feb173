import { type EventForm, findRun, type FoundRun } from './event-runs.ts';
import { roomOf, type OutputCounter } from '../chat/output-bound.ts';

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

type Write<F extends EventForm> = (form: F, run: FoundRun, bytes: Buffer, start: number, framed: boolean) => void;

/** The forms of events that a stream has shown. Events of a known form are not parsed. */
export class EventForms<F extends EventForm> {
  /** Events that were taken. */
  events = 0;
  readonly #counter: OutputCounter;
  readonly #write: Write<F>;
  readonly #forms: F[] = [];
  #credit = LEARN_CREDIT;
  #latest: F | null = null;
  /**
   * How many events in a row had the latest form. The next search looks for as many again at once. So forms that
   * alternate cost no more.
   */
  #row = 0;

  /** `write` writes the run that begins at `start` of `bytes`. */
  constructor(counter: OutputCounter, write: Write<F>) {
    this.#counter = counter;
    this.#write = write;
  }

  /**
   * Writes and counts the events that begin with the data at `start`, as long as they have one known form and their
   * texts fit into the budget. Returns the place after them. If the first event has to be parsed, it writes nothing
   * and returns `start`. `framed`: see findRun.
   */
  take(bytes: Buffer, start: number, end: number, framed: boolean): number {
    const forms = this.#forms;
    for (let i = 0; i < forms.length; i++) {
      const form = forms[i]!;
      const run = this.#find(form, bytes, start, end, framed);
      if (run === null) continue;
      this.#write(form, run, bytes, start, framed);
      this.#latest = form;
      if (i > 0) forms.unshift(...forms.splice(i, 1));
      this.#row += run.events;
      this.#counter.bytes += run.bytes;
      this.#counter.discount += run.discount;
      const events = this.events + run.events;
      const earned = Math.floor(events / EVENTS_PER_CREDIT) - Math.floor(this.events / EVENTS_PER_CREDIT);
      this.#credit = Math.min(LEARN_CREDIT, this.#credit + earned);
      this.events = events;
      return run.end;
    }
    return start;
  }

  /** Learns the form of an event that JSON.parse accepts. `formOf` returns null if the form cannot be learned. */
  learn(text: string, formOf: () => F | null): void {
    if (text.length > EVENT_CHARS_MAX || this.#credit === 0) return;
    // Also if nothing is learned, because the search costs as much.
    this.#credit--;
    const form = formOf();
    if (form !== null && this.#forms.unshift(form) > FORMS_MAX) this.#forms.pop();
  }

  forget(): void {
    this.#forms.length = 0;
  }

  #find(form: F, bytes: Buffer, start: number, end: number, framed: boolean): FoundRun | null {
    if (form !== this.#latest) this.#row = 0;
    const room = roomOf(this.#counter);
    const row = this.#row;
    const found = findRun(form, bytes, start, end, framed, framed ? 1 + row : 1, room);
    if (found !== null || row === 0) return found;
    this.#row = 0;
    return findRun(form, bytes, start, end, framed, 1, room);
  }
}
