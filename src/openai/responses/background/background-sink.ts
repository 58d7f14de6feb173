import { createEventReader, isObject, type ReplySink } from '#wire';
import type { Json } from '../responses-schema.ts';
import type { EventLog } from './event-log.ts';
import { UnfinishedMessages } from './unfinished-messages.ts';

/** The last event of a response. */
export interface EndEvent {
  readonly type: string;
  readonly response: Json;
}

const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.failed']);

/** Takes the stream of a response that is made in the background. No client reads it, so it is never closed. */
export class BackgroundSink implements ReplySink {
  readonly closed = false;
  /** The response as its latest event has it; null before one. */
  latest: Json | null = null;
  /** Its last event; null before it. */
  last: EndEvent | null = null;
  readonly #reader = createEventReader({ bytesMax: Number.MAX_SAFE_INTEGER });
  readonly #unfinished = new UnfinishedMessages();
  readonly #log: EventLog | null;
  readonly #onBegun: () => void;
  #hasBegun = false;

  /** `log`: null if nobody streams it. `onBegun`: called with the first event. */
  constructor(log: EventLog | null, onBegun: () => void) {
    this.#log = log;
    this.#onBegun = onBegun;
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
    this.#unfinished.take(type, event);
    if (type === 'response.incomplete' && isObject(response))
      this.last = { type, response: this.#unfinished.addTo(response) };
    else if (ENDS.has(type) && isObject(response)) this.last = { type, response };
    // Its own first event was stored before it began.
    else if (type !== 'response.created') this.#log?.add(type, event, data);
  }
}
