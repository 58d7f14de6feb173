import { UpstreamFailure, type UpstreamReply } from '#gateway';
import { createEventReader, eventText } from './event-reader.ts';
import { parseMessage, type McpMessage } from './message.ts';
import type { Turn } from './turn.ts';

/** One message of a server. `raw` is the text of the event that brought it, as it came; null of a JSON reply, which is its one message. */
export interface Received {
  readonly message: McpMessage;
  readonly raw: string | null;
  readonly eventId: string | null;
}

/** An event without a message: it gives an id or a time to wait before a resumption. */
export interface Marker {
  readonly message: null;
  readonly raw: string;
  readonly eventId: string | null;
  readonly retryMs: number | null;
}

/**
 * The messages of a server's reply, JSON or events, one by one as they arrive. A status of 400 and above counts as a reply where its body is a JSON-RPC
 * message. Throws UpstreamFailure for anything that is no MCP, and for more than `bytesMax`.
 */
export async function* readReply(reply: UpstreamReply, bytesMax: number): AsyncGenerator<Received | Marker, void, undefined> {
  if (hasEvents(reply)) return yield* readEvents(reply, bytesMax);
  yield await readOne(reply, bytesMax);
}

/** Whether a reply is a stream of events; else it is one message. */
export function hasEvents({ status, headers }: UpstreamReply): boolean {
  return status === 200 && headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() === 'text/event-stream';
}

/** The message of a reply that is one. Throws as readReply does. */
export async function readOne(reply: UpstreamReply, bytesMax: number): Promise<Received> {
  const body = await readAll(reply, bytesMax);
  const message = parseMessage(body.toString('utf8'));
  if (!message)
    throw broken(
      reply.status >= 400 ? `the provider answered with status ${reply.status}` : 'the provider answered with no JSON-RPC message',
      reply.status,
    );
  return { message, raw: null, eventId: null };
}

/** What arrived as an event for the client: as it came, unless the turn changes it. */
export function toEvent({ toClient }: Pick<Turn, 'toClient'>, { message, raw, eventId }: Received | Marker): Uint8Array {
  if (message === null) return Buffer.from(raw);
  const text = toClient(message.text);
  return Buffer.from(raw !== null && text === message.text ? raw : eventText(text, eventId));
}

async function* readEvents(reply: UpstreamReply, bytesMax: number): AsyncGenerator<Received | Marker, void, undefined> {
  const reader = createEventReader({ bytesMax });
  for (;;) {
    const chunks = await reply.read();
    let events;
    try {
      events = chunks === null ? reader.end() : chunks.flatMap((chunk) => [...reader.push(chunk)]);
    } catch (error) {
      throw broken('the provider sent an event that is too large', reply.status, error);
    }
    for (const { data, raw, id, retry } of events) {
      const message = data === '' ? null : parseMessage(data);
      if (data !== '' && !message) throw broken('the provider sent an event that is no JSON-RPC message', reply.status);
      yield message ? { message, raw, eventId: id } : { message: null, raw, eventId: id, retryMs: retry };
    }
    if (chunks === null) return;
  }
}

async function readAll(reply: UpstreamReply, bytesMax: number): Promise<Buffer> {
  const all: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const chunks = await reply.read();
    if (chunks === null) return all.length === 1 ? asBuffer(all[0]!) : Buffer.concat(all, bytes);
    for (const chunk of chunks) {
      all.push(chunk);
      bytes += chunk.byteLength;
    }
    if (bytes > bytesMax) throw broken('the answer of the provider is too large', reply.status);
  }
}

const asBuffer = (chunk: Uint8Array) => (Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));

/** Never retryable: a tool may have acted before it broke. */
function broken(message: string, status: number, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(message, { status, retryable: false, blame: 'provider', ...(cause === undefined ? {} : { cause }) });
}
