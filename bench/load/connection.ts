import { connect, type Socket } from 'node:net';

export interface Reply {
  readonly ok: boolean;
  /** Time of the body's first byte, in milliseconds of the monotonic clock. */
  readonly firstByteAt: number;
  readonly doneAt: number;
  /** The error, if `ok` is false. */
  readonly error: string;
}

/**
 * One HTTP/1.1 keep-alive connection that sends prepared bytes and parses replies with minimal work. One request at a
 * time.
 */
export interface Connection {
  send(request: Buffer, done: (reply: Reply) => void, first?: () => void): void;
  close(): void;
}

const HEAD_END = Buffer.from('\r\n\r\n');
/** The end of a chunked body. In this benchmark no write ends like this in the middle of a body. */
const LAST_CHUNK = '0\r\n\r\n';
/** The ends of the streams of chat, messages, responses and MCP. That of responses contains the cost. */
const STREAM_END = /data: \[DONE\]|"message_stop"|completions_cost"|"isError": ?false/;
/** Number of bytes at the end of a reply that always contain this text, however the reply is split into chunks. */
const TAIL_BYTES = 512;
const CHUNK_LINE = /\r\n[0-9a-f]+\r\n/g;

export function openConnection(port: number): Connection {
  let socket: Socket | null = null;
  let done: ((reply: Reply) => void) | null = null;
  let first: (() => void) | null = null;
  let head: Buffer | null = null;
  let headDone = false;
  let ok = false;
  let status = '';
  /** Remaining bytes of the body. -1 if it is chunked. */
  let left = 0;
  let streamed = false;
  let firstByteAt = 0;
  let tail = '';

  const finish = (error: string) => {
    const call = done;
    done = null;
    if (call) call({ ok: error === '', firstByteAt, doneAt: performance.now(), error });
  };
  const fail = (error: string) => {
    socket?.destroy();
    socket = null;
    finish(error);
  };

  const open = (): Socket => {
    const opened = connect({ port, host: '127.0.0.1', noDelay: true });
    opened.on('data', (bytes: Buffer) => {
      if (opened === socket && done) read(bytes);
    });
    opened.on('error', (error) => opened === socket && fail(error.message));
    opened.on('close', () => opened === socket && fail('the connection was closed'));
    return opened;
  };

  const read = (bytes: Buffer) => {
    let body = bytes;
    if (!headDone) {
      head = head ? Buffer.concat([head, bytes]) : bytes;
      const end = head.indexOf(HEAD_END);
      if (end < 0) return;
      const text = head.toString('latin1', 0, end);
      headDone = true;
      status = text.slice(9, 12);
      ok = status === '200';
      const length = /\r\ncontent-length: *(\d+)/i.exec(text);
      left = length ? Number(length[1]) : -1;
      streamed = /\r\ncontent-type: *text\/event-stream/i.test(text);
      body = head.subarray(end + 4);
      head = null;
      if (left === 0) return finish(ok ? '' : `status ${status}`);
      if (body.length === 0) return;
    }
    if (firstByteAt === 0) {
      firstByteAt = performance.now();
      first?.();
    }
    if (left > 0) {
      left -= body.length;
      if (!ok) tail += body.toString('latin1', 0, 300);
      if (left <= 0) finish(ok ? '' : `status ${status}: ${tail.slice(0, 300)}`);
      return;
    }
    tail =
      body.length >= TAIL_BYTES
        ? body.toString('latin1', body.length - TAIL_BYTES)
        : (tail + body.toString('latin1')).slice(-TAIL_BYTES);
    if (!tail.endsWith(LAST_CHUNK)) return;
    if (!ok) finish(`status ${status}: ${body.toString('latin1', 0, 300)}`);
    else finish(streamed && !STREAM_END.test(tail.replaceAll(CHUNK_LINE, '')) ? 'a stream without its end' : '');
  };

  return {
    send(request, onDone, onFirst) {
      if (!socket || socket.destroyed) socket = open();
      done = onDone;
      first = onFirst ?? null;
      head = null;
      headDone = false;
      firstByteAt = 0;
      tail = '';
      socket.write(request);
    },
    close() {
      const closing = socket;
      socket = null;
      done = null;
      closing?.destroy();
    },
  };
}
