import type { ClientSink } from './reply-sink.ts';

/**
 * A sink for the bytes of the response that ends a reply: JSON, or the data of one event if the reply is an event
 * stream by then. `begin` writes the head if there was none, and returns the form.
 */
export function responseSink(
  client: ClientSink,
  begin: (status: number, headers: Readonly<Record<string, string | number>>) => 'json' | 'event',
): ClientSink {
  let isEvent = false;
  return {
    get closed() {
      return client.closed;
    },
    head(status, headers) {
      isEvent = begin(status, headers) === 'event';
      if (isEvent) client.write(EVENT);
    },
    flush: () => client.flush(),
    write: (bytes) => client.write(isEvent ? asData(bytes) : bytes),
    drained: () => client.drained(),
    end(rest) {
      const bytes = typeof rest === 'string' ? Buffer.from(rest) : rest;
      client.end(isEvent ? Buffer.concat([asData(bytes), EVENT_END]) : bytes);
    },
    fail: (bytes) => client.fail(bytes),
    cut: () => client.cut(),
  };
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
