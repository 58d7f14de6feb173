import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * An agent of A2A 1.0 over JSON-RPC, in this process, that a test can follow task by task. The first word of a
 * message says what it does:
 *
 * | text | what becomes of it |
 * |---|---|
 * | `done` | completed at once |
 * | `slow ms` | completed after so long |
 * | `fail ms` | failed after so long |
 * | `ask` | asks its client for input; any answer completes it |
 * | anything else | works until `end` |
 *
 * A message is answered at once; a stream lasts until the task has ended or asks.
 */
export interface QuickAgent {
  readonly url: string;
  /** Every task by its id, in the order of their beginning. */
  readonly tasks: ReadonlyMap<string, QuickTask>;
  /** Called with each request for a task before it is answered. */
  onPoll: ((taskId: string) => Promise<void> | void) | null;
  end(taskId: string, state: string): void;
  /** The same, but its streams say nothing of it until `tell`. */
  endSilently(taskId: string, state: string): void;
  /** Its streams say where it stands. */
  tell(taskId: string): void;
  /** Responses that are open. */
  readonly streams: number;
  /** Closes connections that are only kept for the next request. */
  closeIdle(): void;
  /** Of all tasks. */
  forget(): void;
  close(): Promise<void>;
}

export interface QuickTask {
  readonly id: string;
  readonly text: string;
  /** In 0.3's words. */
  readonly state: string;
  /** Messages to it. */
  readonly messages: number;
}

interface Kept {
  id: string;
  text: string;
  state: string;
  messages: number;
  readonly listeners: Set<Listener>;
}

interface Listener {
  readonly response: ServerResponse;
  readonly id: unknown;
}

interface Request {
  readonly id: unknown;
  readonly method: string;
  readonly params: {
    readonly id?: string;
    readonly message?: { readonly taskId?: string; readonly parts: readonly [{ readonly text: string }] };
  };
}

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'canceled', 'rejected']);
const nameOf = (state: string) => `TASK_STATE_${state.replaceAll('-', '_').toUpperCase()}`;

export async function startQuickAgent(): Promise<QuickAgent> {
  const tasks = new Map<string, Kept>();
  let made = 0;
  let streams = 0;

  const shown = ({ id, state }: Kept) => ({
    id,
    contextId: `context-of-${id}`,
    status: { state: nameOf(state), timestamp: new Date().toISOString() },
    ...(state === 'completed' ? { artifacts: [{ artifactId: 'a', parts: [{ text: 'done' }] }] } : {}),
  });
  const write = ({ response, id }: Listener, result: object) =>
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
  const tell = ({ id: taskId, state, listeners }: Kept) => {
    const over = ENDS.has(state) || state === 'input-required';
    for (const listener of listeners) {
      write(listener, {
        statusUpdate: { taskId, contextId: `context-of-${taskId}`, status: { state: nameOf(state) } },
      });
      if (over) listener.response.end();
    }
  };
  const become = (task: Kept, state: string) => {
    if (ENDS.has(task.state)) return;
    task.state = state;
    tell(task);
  };
  const listen = (task: Kept, listener: Listener) => {
    const { response } = listener;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    write(listener, { task: shown(task) });
    if (ENDS.has(task.state)) return void response.end();
    task.listeners.add(listener);
    streams += 1;
    response.once('close', () => {
      task.listeners.delete(listener);
      streams -= 1;
    });
  };
  const work = (task: Kept, text: string) => {
    const [word, ms] = text.split(' ');
    if (word === 'done') become(task, 'completed');
    else if (word === 'ask') become(task, 'input-required');
    else if (word === 'slow' || word === 'fail')
      setTimeout(() => become(task, word === 'slow' ? 'completed' : 'failed'), Number(ms)).unref();
  };

  async function answer({ id, method, params }: Request, response: ServerResponse): Promise<void> {
    const json = (body: object) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    const { message } = params;
    if (message) {
      const known = message.taskId === undefined ? undefined : tasks.get(message.taskId);
      const text = message.parts[0].text;
      const task: Kept = known ?? { id: `task-${++made}`, text, state: 'working', messages: 0, listeners: new Set() };
      task.messages += 1;
      tasks.set(task.id, task);
      // What is over at once is shown so.
      if (known || text === 'done') become(task, 'completed');
      if (method === 'SendStreamingMessage') listen(task, { response, id });
      else json({ result: { task: shown(task) } });
      if (!known) work(task, text);
      return;
    }
    await agent.onPoll?.(params.id!);
    const task = tasks.get(params.id!);
    if (!task) return json({ error: { code: -32001, message: 'Task not found' } });
    if (method === 'CancelTask') {
      if (ENDS.has(task.state)) return json({ error: { code: -32002, message: 'Task cannot be canceled' } });
      become(task, 'canceled');
    }
    if (method === 'SubscribeToTask') return listen(task, { response, id });
    json({ result: shown(task) });
  }

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      if (incoming.method === 'GET')
        return void response.writeHead(200, { 'content-type': 'application/json' }).end(card);
      answer(JSON.parse(Buffer.concat(chunks).toString()) as Request, response).catch(() => response.destroy());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const card = JSON.stringify({
    name: 'Quick',
    description: 'Can be followed.',
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  });

  const agent: QuickAgent = {
    url,
    tasks,
    onPoll: null,
    end(taskId, state) {
      become(tasks.get(taskId)!, state);
    },
    endSilently(taskId, state) {
      tasks.get(taskId)!.state = state;
    },
    tell(taskId) {
      tell(tasks.get(taskId)!);
    },
    get streams() {
      return streams;
    },
    closeIdle: () => server.closeIdleConnections(),
    forget: () => tasks.clear(),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return agent;
}
