import { createEventReader, isObject, type JsonObject } from '#wire';
import type { ReplySink } from '#http';
import type { KeptEvents } from '#kept-responses';
import { eventText, withMembersOf } from '../../native/passthrough.ts';

export interface EndEvent {
  readonly type: string;
  readonly response: JsonObject;
}

const INCOMPLETE = 'response.incomplete';
const ENDS: ReadonlySet<unknown> = new Set([INCOMPLETE, 'response.completed', 'response.failed']);
export const isEnd = (type: unknown): boolean => ENDS.has(type);

/** Takes the stream of a response that is made in the background. No client reads it, so it is never closed. */
export class BackgroundSink implements ReplySink {
  readonly closed = false;
  /** The response as its latest event has it; null before one. */
  latest: JsonObject | null = null;
  last: EndEvent | null = null;
  readonly #reader = createEventReader({ bytesMax: Number.MAX_SAFE_INTEGER });
  readonly #output = new PartialOutput();
  readonly #log: EventLog | null;
  readonly #onBegun: () => void;
  #hasBegun = false;

  /** `log`: null if nobody streams it. `onBegun`: called with the first event. */
  constructor(log: EventLog | null, onBegun: () => void) {
    this.#log = log;
    this.#onBegun = onBegun;
  }

  output(): readonly JsonObject[] {
    return this.#output.all();
  }

  head(): void {}

  flush(): void {}

  write(bytes: Uint8Array): boolean {
    for (const { event, data } of this.#reader.push(bytes)) if (data !== '') this.#take(event, data);
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  end(bytes: Uint8Array | string): void {
    this.write(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
  }

  fail(bytes: Uint8Array): void {
    this.write(bytes);
  }

  #take(type: string, data: string): void {
    const event = JSON.parse(data) as JsonObject;
    const { response } = event;
    if (isObject(response)) this.latest = response;
    if (!this.#hasBegun) this.#onBegun();
    this.#hasBegun = true;
    this.#output.take(type, event);
    if (isEnd(type) && isObject(response))
      this.last = { type, response: type === INCOMPLETE ? this.#output.addTo(response) : response };
    // Its own first event was stored before it began.
    else if (type !== 'response.created') this.#log?.add(type, event, data);
  }
}

interface Partial {
  readonly item: JsonObject;
  /** The text that has come of a message that has not ended. */
  readonly texts: string[];
  readonly hasEnded: boolean;
}

class PartialOutput {
  readonly #items = new Map<unknown, Partial>();

  take(type: string, { output_index: place, item, delta }: JsonObject): void {
    if (type === 'response.output_text.delta') {
      if (typeof delta === 'string') this.#items.get(place)?.texts.push(delta);
    } else if (type === 'response.output_item.done' && isObject(item))
      this.#items.set(place, { item, texts: [], hasEnded: true });
    else if (type === 'response.output_item.added' && isObject(item) && item['type'] === 'message')
      this.#items.set(place, { item, texts: [], hasEnded: false });
  }

  all(): readonly JsonObject[] {
    const inOrder = [...this.#items].sort(([one], [other]) => Number(one) - Number(other));
    return inOrder.flatMap(([, partial]) => (partial.hasEnded ? [partial.item] : cutMessage(partial)));
  }

  /**
   * A response that was cut, with the messages that its end does not have. A client that reads the stream has their
   * text. One that only polls gets it with the response, because it is charged.
   */
  addTo(response: JsonObject): JsonObject {
    const output = Array.isArray(response['output']) ? (response['output'] as readonly JsonObject[]) : [];
    const itemIds = new Set(output.map(({ id }) => id));
    const more = [...this.#items.values()].flatMap((partial) =>
      partial.hasEnded || itemIds.has(partial.item['id']) ? [] : cutMessage(partial),
    );
    return more.length === 0 ? response : { ...response, output: [...output, ...more] };
  }
}

/** A message that has not ended; none if nothing of its text has come. */
function cutMessage({ item, texts }: Partial): readonly JsonObject[] {
  if (texts.length === 0) return [];
  const content = [{ type: 'output_text', text: texts.join(''), annotations: [], logprobs: [] }];
  return [{ ...item, status: 'incomplete', content }];
}

interface EventLogOptions {
  /** The number of the first event. */
  readonly from: number;
  readonly store: (events: KeptEvents) => Promise<void>;
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
  add(type: string, event: JsonObject, data: string): void {
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
  rest(type: string, event: JsonObject): readonly KeptEvents[] {
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
