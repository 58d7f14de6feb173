import { createEventReader, isObject, type ReplySink } from '#wire';
import type { Json } from '../responses-schema.ts';
import type { EventLog } from './event-log.ts';
import { PartialOutput } from './partial-output.ts';

/** The last event of a response. */
export interface EndEvent {
  readonly type: string;
  readonly response: Json;
}

const INCOMPLETE = 'response.incomplete';
const ENDS: ReadonlySet<unknown> = new Set([INCOMPLETE, 'response.completed', 'response.failed']);
/** Whether an event is the last one of a response. */
export const isEnd = (type: unknown): boolean => ENDS.has(type);

/** Takes the stream of a response that is made in the background. No client reads it, so it is never closed. */
export class BackgroundSink implements ReplySink {
  readonly closed = false;
  /** The response as its latest event has it; null before one. */
  latest: Json | null = null;
  /** Its last event; null before it. */
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

  /** The output that has come until now. */
  output(): readonly Json[] {
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
    const event = JSON.parse(data) as Json;
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
