import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** An MCP server that breaks its connection where it is told to, byte by byte. */
export interface CutServer {
  readonly url: string;
  /** Calls that came whole. */
  readonly asked: number;
  /** Connections that are open. */
  readonly connections: number;
  /** The next request is cut when so many of its bytes have come; null for none. */
  cutRequestAt: number | null;
  /** Bytes of the request that came last. */
  readonly requestBytes: number;
  /** Bytes of the last answer, had it not been cut; and whether all of the response was in what was written of it. */
  readonly answer: { readonly bytes: number; readonly whole: boolean };
  closeConnections(): void;
  close(): Promise<void>;
}

/** What a call says in its arguments of how it is to be answered. */
export interface Cut {
  readonly format: 'json' | 'events';
  /** Bytes of the answer that are written before the connection is cut; null for all of it, and no cut. */
  readonly at: number | null;
  /** Before the last of it. */
  readonly waitMs?: number;
}

const RESULT = '{"resultType":"complete","content":[{"type":"text","text":"héllo 🙂"}],"structuredContent":{"a":1}}';
const NOTE = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}\n\n';

/** A whole answer as its bytes are, in two pieces. */
function answerOf(idText: string, format: Cut['format']): readonly [Buffer, Buffer] {
  const message = `{"jsonrpc":"2.0","id":${idText},"result":${RESULT}}`;
  if (format === 'json') {
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(message)}\r\n\r\n`;
    return [Buffer.from(head), Buffer.from(message)];
  }
  const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
  return [Buffer.from(head + chunk(NOTE)), Buffer.from(`${chunk(`data: ${message}\n\n`)}0\r\n\r\n`)];
}

/** Behind the last event: the end of its chunk and the last chunk, which say nothing more. */
const AFTER_EVENT = '\r\n0\r\n\r\n'.length;

export async function startCutServer(era: 'modern' | 'legacy'): Promise<CutServer> {
  const sockets = new Set<Socket>();
  const state = { asked: 0, cutRequestAt: null as number | null, requestBytes: 0, answer: { bytes: 0, whole: false } };

  function respond(socket: Socket, text: string, method: string): void {
    const write = (status: string, body: string, more = '') =>
      socket.write(
        `HTTP/1.1 ${status}\r\n${more}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    if (method === 'DELETE') return void write('200 OK', '{}');
    if (method !== 'POST') return void write('405 Method Not Allowed', '');
    const message = JSON.parse(text) as { id?: unknown; method: string; params?: { arguments?: Cut } };
    const idText = JSON.stringify(message.id);
    const result = (given: object, more = '') =>
      void write('200 OK', `{"jsonrpc":"2.0","id":${idText},"result":${JSON.stringify(given)}}`, more);
    if (message.id === undefined) return void write('202 Accepted', '');
    const about = { capabilities: { tools: {} }, serverInfo: { name: 'cut', version: '1' } };
    switch (message.method) {
      case 'server/discover':
        if (era === 'modern')
          return result({
            supportedVersions: ['2026-07-28'],
            resultType: 'complete',
            ttlMs: 0,
            cacheScope: 'private',
            ...about,
          });
        return void write(
          '400 Bad Request',
          `{"jsonrpc":"2.0","id":${idText},"error":{"code":-32601,"message":"Method not found"}}`,
        );
      case 'initialize':
        return result({ protocolVersion: '2025-11-25', ...about }, 'mcp-session-id: its-own\r\n');
      case 'tools/list':
        return result({
          resultType: 'complete',
          ttlMs: 0,
          cacheScope: 'private',
          tools: [{ name: 'cut', inputSchema: { type: 'object' } }],
        });
      default:
    }
    state.asked += 1;
    const { format, at, waitMs = 0 } = message.params!.arguments!;
    const [first, last] = answerOf(idText, format);
    const bytes = first.length + last.length;
    state.answer = { bytes, whole: at === null || at >= bytes - (format === 'json' ? 0 : AFTER_EVENT) };
    if (at === null) {
      socket.write(first);
      return void setTimeout(() => socket.write(last), waitMs);
    }
    socket.write(Buffer.concat([first, last]).subarray(0, at), () => socket.destroy());
  }

  const server = createServer({ noDelay: true }, (socket) => {
    let bytes = Buffer.alloc(0);
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (state.cutRequestAt !== null && bytes.length >= state.cutRequestAt) {
        state.cutRequestAt = null;
        return void socket.destroy();
      }
      const end = bytes.indexOf('\r\n\r\n');
      if (end === -1) return;
      const head = bytes.toString('latin1', 0, end);
      const whole = end + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (bytes.length < whole) return;
      const text = bytes.toString('utf8', end + 4, whole);
      state.requestBytes = whole;
      bytes = bytes.subarray(whole);
      respond(socket, text, head.slice(0, head.indexOf(' ')));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    get connections() {
      return sockets.size;
    },
    closeConnections,
    async close() {
      closeConnections();
      server.close();
      await once(server, 'close');
    },
  });
}
