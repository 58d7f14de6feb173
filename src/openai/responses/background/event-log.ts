import type { KeptEvents } from '#tasks';
import { eventText, withMembersOf } from '../../native/native-speech.ts';
import type { Json } from '../responses-schema.ts';

interface EventLogOptions {
  /** The number of the first event. */
  readonly from: number;
  readonly store: (events: KeptEvents) => Promise<void>;
  /** Called after a part was stored. */
  readonly onStored: () => void;
  readonly onError: (error: unknown) => void;
}

/** Events are stored together, because each part is one write to the database. */
const STORE_MS = 200;
/** The pause after a write that failed. */
const RETRY_MS = 1_000;

/** Numbers the events of a response that is made in the background, and stores them. */
export class EventLog {
  readonly #options: EventLogOptions;
  /** Events that are not stored, from number `#first`. */
  #texts: string[] = [];
  #first: number;
  /** The part that could not be stored. */
  #failed: KeptEvents | null = null;
  #timer: NodeJS.Timeout | null = null;
  #storing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: EventLogOptions) {
    this.#options = options;
    this.#first = options.from;
  }

  /** `data`: the JSON text of `event`. */
  add(type: string, event: Json, data: string): void {
    if (this.#isClosed) return;
    const number = this.#first + this.#texts.length;
    this.#texts.push(eventText(type, withMembersOf(data, event, null, { sequence_number: number })));
    this.#schedule(STORE_MS);
  }

  /** Takes and stores no more. To be called before `rest`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#storing;
  }

  /** The events that are not stored, with this one as the last. */
  rest(type: string, event: Json): readonly KeptEvents[] {
    const last = this.#first + this.#texts.length;
    const data = JSON.stringify({ ...event, type, sequence_number: last });
    const part = { first: this.#first, last, text: this.#texts.join('') + eventText(type, data) };
    return this.#failed === null ? [part] : [this.#failed, part];
  }

  #schedule(ms: number): void {
    if (this.#isClosed || this.#timer !== null || this.#storing !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#storing = this.#store();
    }, ms);
  }

  async #store(): Promise<void> {
    // After a lost connection the part may be there. Storing the same part again then changes nothing.
    const part = this.#failed ?? this.#takePart();
    this.#failed = null;
    try {
      await this.#options.store(part);
      this.#options.onStored();
    } catch (error) {
      this.#failed = part;
      this.#options.onError(error);
    }
    this.#storing = null;
    if (this.#failed !== null || this.#texts.length > 0) this.#schedule(this.#failed === null ? STORE_MS : RETRY_MS);
  }

  #takePart(): KeptEvents {
    const part = { first: this.#first, last: this.#first + this.#texts.length - 1, text: this.#texts.join('') };
    this.#first += this.#texts.length;
    this.#texts = [];
    return part;
  }
}
