import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BOUNDS } from '#wire';
import { MODEL_ROWS } from './model-rows.ts';
import { within } from './shapes.ts';
import type { World } from './world.ts';

/*
 * A process of its own: the provider that answers with the worst JSON that is read, and the greedy account that asks
 * for it, so that neither delays the clock of the test.
 */

/** `origin`: of the gateway; null to end the flood. The answer is the number of replies so far. */
export interface FloodOrder {
  readonly origin: string | null;
  readonly key: string;
}

const WIDTH = 2;
const ROWS = ['messages stream', 'gemini stream', 'chat stream', 'responses', 'speech', 'rerank'];
const SHAPES = ['as many short texts as are read', 'as long a text as is read', 'as many names as are read'];

const kinds = ROWS.map((name) => {
  const row = MODEL_ROWS[name]!;
  const shapes = within({ ...BOUNDS[row.bound], ...row });
  return {
    row,
    worst: SHAPES.map((shape) => shapes[shape]!()),
    replies: [] as { type: string; body: Buffer }[],
    next: 0,
  };
});
const server = createServer((request, response) => {
  const asked = { method: 'POST', path: request.url!, body: '' };
  const kind = kinds.find(({ row }) => row.answer!(asked, '0') !== null)!;
  if (kind.replies.length === 0)
    kind.replies = kind.worst.map((junk) => {
      const { type = 'application/json', body } = kind.row.answer!(asked, junk)!;
      return { type, body: Buffer.from(body) };
    });
  const { type, body } = kind.replies[(kind.next += 1) % kind.replies.length]!;
  request.resume().on('end', () => response.writeHead(200, { 'content-type': type }).end(body));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
process.send!((server.address() as AddressInfo).port);

let order: FloodOrder = { origin: null, key: '' };
let read = 0;
async function ask(path: string, body: unknown): Promise<string> {
  const headers = { authorization: `Bearer ${order.key}`, 'content-type': 'application/json' };
  const response = await fetch(order.origin! + path, { method: 'POST', headers, body: JSON.stringify(body) });
  for await (const _piece of response.body!);
  read += 1;
  return '';
}
async function flood(): Promise<void> {
  for (let at = 0; order.origin !== null; at++)
    await kinds[at % kinds.length]!.row.act({ ask } as unknown as World, '').catch(() => {});
}
let running: Promise<unknown> = Promise.resolve();
process.on('message', async (message: FloodOrder) => {
  order = message;
  if (message.origin === null) {
    await running;
    process.send!(read);
  } else running = Promise.all(Array.from({ length: WIDTH }, flood));
});
process.on('disconnect', () => process.exit());
