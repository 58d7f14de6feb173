import type { ClientSink } from './reply-sink.ts';

/**
 * A sink for the bytes of the response that ends a reply: JSON, or the data of one event if the reply is an event
 * stream by then. `begin` writes the head if there was none, and returns the form.
 */
export function responseSink(client: ClientSink, begin: Begin): ClientSink {
  return new ResponseSink(client, begin);
}

type Begin = (status: number, headers: Readonly<Record<string, string | number>>) => 'json' | 'event';

class ResponseSink implements ClientSink {
  readonly #client: ClientSink;
  readonly #begin: Begin;
  #isEvent = false;

  constructor(client: ClientSink, begin: Begin) {
    this.#client = client;
    this.#begin = begin;
  }

  get closed(): boolean {
    return this.#client.closed;
  }

  head(status: number, headers: Readonly<Record<string, string | number>>): void {
    this.#isEvent = this.#begin(status, headers) === 'event';
    if (this.#isEvent) this.#client.write(EVENT);
  }

  flush(): void {
    this.#client.flush();
  }

  write(bytes: Uint8Array): boolean {
    return this.#client.write(this.#isEvent ? asData(bytes) : bytes);
  }

  drained(): Promise<void> {
    return this.#client.drained();
  }

  end(rest: Uint8Array | string): void {
    const bytes = typeof rest === 'string' ? Buffer.from(rest) : rest;
    this.#client.end(this.#isEvent ? Buffer.concat([asData(bytes), EVENT_END]) : bytes);
  }

  fail(bytes: Uint8Array): void {
    this.#client.fail(bytes);
  }

  cut(): void {
    this.#client.cut();
  }
}

const EVENT = Buffer.from('event: message\ndata: ');
const EVENT_END = Buffer.from('\n\n');
const LF = 0x0a;
const CR = 0x0d;

/**
 * Each line becomes a `data:` line, as in eventText. JSON has line ends only between tokens, so this does not change
 * its strings.
 */
function asData(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(LF) && !bytes.includes(CR)) return bytes;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  return Buffer.from(text.replaceAll(/[\r\n]/g, '\ndata: '), 'latin1');
}
