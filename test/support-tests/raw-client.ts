import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** What arrived on a socket until its end. */
export interface RawReply {
  readonly head: string;
  /** Payload of the body, chunk framing taken off as far as it goes. */
  readonly body: Buffer;
  /** Sizes of the HTTP chunks. */
  readonly chunks: readonly number[];
  /** False when the closing chunk, or bytes of the announced length, are missing. */
  readonly complete: boolean;
  /** Code of the socket's error, or null after an orderly end. */
  readonly error: string | null;
}

/** Posts JSON and reads bytes, with nothing of an HTTP client between. */
export async function postRaw(
  url: string,
  json: unknown,
  socketOf: (socket: Socket) => void = () => {},
): Promise<RawReply> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  socketOf(socket);
  const parts: Buffer[] = [];
  let error: string | null = null;
  socket.on('data', (part: Buffer) => parts.push(part));
  socket.on('error', (failure: NodeJS.ErrnoException) => (error = failure.code ?? failure.message));
  const body = JSON.stringify(json);
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  await new Promise((resolve) => socket.once('close', resolve));
  return parse(Buffer.concat(parts), error);
}

function parse(bytes: Buffer, error: string | null): RawReply {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return { head: bytes.toString('latin1'), body: Buffer.alloc(0), chunks: [], complete: false, error };
  const head = bytes.toString('latin1', 0, end);
  const rest = bytes.subarray(end + 4);
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  if (length !== undefined)
    return { head, body: rest, chunks: [rest.length], complete: rest.length === Number(length), error };
  const payload: Buffer[] = [];
  for (let offset = 0; ;) {
    const line = rest.indexOf('\r\n', offset);
    const size = line === -1 ? NaN : Number.parseInt(rest.toString('latin1', offset, line), 16);
    const done = size === 0;
    if (done || Number.isNaN(size))
      return { head, body: Buffer.concat(payload), chunks: payload.map((part) => part.length), complete: done, error };
    payload.push(rest.subarray(line + 2, line + 2 + size));
    offset = line + 2 + size + 2;
  }
}

/** A minimal chat request to the test provider. */
export function chatBody(commands: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    model: 'test/model',
    messages: [{ role: 'user', content: `hello ${commands}` }],
    stream: true,
    stream_options: { include_usage: true },
    ...more,
  };
}

/** The `data` of each event of an SSE body, as the specification reads it. */
export function readEvents(body: Buffer): string[] {
  const text = body.toString('utf8').replace(/^\u{FEFF}/u, '');
  const events: string[] = [];
  let data: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === '' && data.length > 0) {
      events.push(data.join('\n'));
      data = [];
    } else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
  }
  return events;
}
