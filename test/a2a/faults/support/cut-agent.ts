import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * An agent of A2A 1.0 that breaks its connections where it is told to, byte by byte, and does its work all the same.
 */
export interface CutAgent {
  readonly url: string;
  /** By the id of the task, how the agent's work on it ended. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** The next message is cut when so many bytes of it have come, with its head; null for none. */
  cutRequestAt: number | null;
  /** Bytes of the last message that came whole, with its head. */
  readonly requestBytes: number;
  readonly connections: number;
  closeConnections(): void;
  close(): Promise<void>;
}

export type Outcome = 'COMPLETED' | 'FAILED';

/** What a message says, as JSON, of how it is to be answered. */
export interface CutOrder {
  /** Names the task. */
  readonly task: string;
  /**
   * `stream`: a task, its work, an artifact and its end. `artifact-first`: without the task before it. `answer`:
   * the task as it ended. `promise`: the task while it works.
   */
  readonly format: 'stream' | 'artifact-first' | 'answer' | 'promise';
  readonly outcome: Outcome;
  /** Bytes of the answer that are written before the connection is cut; null for all of it. */
  readonly at: number | null;
  /** Before the last event. */
  readonly waitMs?: number;
}

interface Answer {
  readonly bytes: Buffer;
  /** Where the last event begins. */
  readonly last: number;
  /** So many bytes hold all that it says. */
  readonly whole: number;
}

/** An answer as its bytes are. */
export function answerOf(
  { task, format, outcome }: Pick<CutOrder, 'task' | 'format' | 'outcome'>,
  id: unknown,
): Answer {
  const contextId = `context-of-${task}`;
  const status = (state: string) => ({ state: `TASK_STATE_${state}`, timestamp: '2026-11-20T10:00:00.000Z' });
  const say = (result: object) => JSON.stringify({ jsonrpc: '2.0', id, result });
  if (format === 'answer' || format === 'promise') {
    const body = Buffer.from(
      say({ task: { id: task, contextId, status: status(format === 'answer' ? outcome : 'WORKING') } }),
    );
    const head = Buffer.from(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.byteLength}\r\n\r\n`,
    );
    const bytes = Buffer.concat([head, body]);
    return { bytes, last: head.byteLength, whole: bytes.byteLength };
  }
  const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  const event = (result: object) => chunk(`data: ${say(result)}\n\n`);
  const artifact = event({
    artifactUpdate: { taskId: task, contextId, artifact: { artifactId: 'a', parts: [{ text: 'héllo 🙂' }] } },
  });
  const begin =
    event({ task: { id: task, contextId, status: status('SUBMITTED') } }) +
    event({ statusUpdate: { taskId: task, contextId, status: status('WORKING') } });
  const before = Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${format === 'stream' ? begin : ''}${artifact}`,
  );
  const end = Buffer.from(`${event({ statusUpdate: { taskId: task, contextId, status: status(outcome) } })}0\r\n\r\n`);
  const bytes = Buffer.concat([before, end]);
  return { bytes, last: before.byteLength, whole: bytes.byteLength - '\r\n0\r\n\r\n'.length };
}

interface Request {
  readonly id: unknown;
  readonly params: {
    readonly id?: string;
    readonly message?: { readonly parts: readonly [{ readonly text: string }] };
  };
}

/** The first byte of it. */
const POST = 'P'.charCodeAt(0);

export async function startCutAgent(): Promise<CutAgent> {
  const outcomes = new Map<string, Outcome>();
  const sockets = new Set<Socket>();
  const state = { cutRequestAt: null as number | null, requestBytes: 0 };

  const tell = (socket: Socket, order: CutOrder, id: unknown) => {
    outcomes.set(order.task, order.outcome);
    const { bytes, last } = answerOf(order, id);
    if (order.at !== null) return void socket.write(bytes.subarray(0, order.at), () => socket.destroy());
    if (order.waitMs === undefined) return void socket.write(bytes);
    socket.write(bytes.subarray(0, last));
    setTimeout(() => socket.write(bytes.subarray(last)), order.waitMs).unref();
  };

  const answer = (socket: Socket, method: string, text: string) => {
    const json = (value: object) => {
      const body = JSON.stringify(value);
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    };
    if (method === 'GET') return json(card);
    const { id, params } = JSON.parse(text) as Request;
    if (params.message) return tell(socket, JSON.parse(params.message.parts[0].text) as CutOrder, id);
    const outcome = outcomes.get(params.id!);
    if (outcome === undefined) return json({ jsonrpc: '2.0', id, error: { code: -32001, message: 'Task not found' } });
    json({
      jsonrpc: '2.0',
      id,
      result: { id: params.id, contextId: `context-of-${params.id}`, status: { state: `TASK_STATE_${outcome}` } },
    });
  };

  const server = createServer({ noDelay: true }, (socket) => {
    let bytes = Buffer.alloc(0);
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      // The gateway may ask for the card at any time.
      if (state.cutRequestAt !== null && bytes[0] === POST && bytes.byteLength >= state.cutRequestAt) {
        state.cutRequestAt = null;
        return void socket.destroy();
      }
      const end = bytes.indexOf('\r\n\r\n');
      if (end === -1) return;
      const head = bytes.toString('latin1', 0, end);
      const whole = end + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (bytes.byteLength < whole) return;
      const text = bytes.toString('utf8', end + 4, whole);
      bytes = bytes.subarray(whole);
      if (text.includes('"message"')) state.requestBytes = whole;
      answer(socket, head.slice(0, head.indexOf(' ')), text);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const card = {
    name: 'Cut',
    description: 'Breaks off.',
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  };
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return Object.assign(state, {
    url,
    outcomes,
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
