import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { NEW_ID } from './bodies.ts';
import { startProvider } from './provider.ts';

/** What is sent, so often. `raw`: bytes for the socket as they are, in place of a request. */
export interface Order {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  readonly raw: Uint8Array | null;
  /** Requests at once, and how many times. */
  readonly width: number;
  readonly times: number;
}

/** Status by count; 0 where the connection broke. The beginning of an answer that was none of 2xx. */
export interface Outcome {
  readonly statuses: ReadonlyMap<number, number>;
  readonly refusal: string;
}

/*
 * The provider of the worst answers, and who sends the worst requests, in a thread of their own: what they cost
 * must not slow the clock of who stands by. The gateway is a process of its own, whose loop is measured in it.
 */
const provider = await startProvider();
const agent = new Agent({ keepAlive: true });

async function sendAll(order: Order): Promise<Outcome> {
  const statuses = new Map<number, number>();
  let refusal = '';
  for (let time = 0; time < order.times; time++)
    await Promise.all(
      Array.from({ length: order.width }, async () => {
        const { status, text } = order.raw === null ? await send(order) : await sendRaw(order.url, order.raw);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status < 200 || status > 299) refusal = text;
      }),
    );
  return { statuses, refusal };
}

const SHOWN = 300;

function send({ url, method, headers, body }: Order): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve) => {
    const asked = request(
      url,
      { method, agent, headers: { ...headers, ...(body ? { 'content-length': String(body.byteLength) } : {}) } },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          if (text.length < SHOWN) text += chunk.toString('latin1', 0, SHOWN);
        });
        response.on('end', () => resolve({ status: response.statusCode!, text }));
        response.on('error', () => resolve({ status: 0, text: 'the connection broke' }));
      },
    );
    asked.on('error', (error) => resolve({ status: 0, text: error.message }));
    if (body === null) return void asked.end();
    const bytes = Buffer.from(body);
    const at = bytes.indexOf(NEW_ID);
    if (at !== -1) bytes.write(crypto.randomUUID(), at);
    asked.end(bytes);
  });
}

/** The status of the last answer; the bytes end with a request that closes its connection. */
async function sendRaw(url: string, raw: Uint8Array): Promise<{ readonly status: number; readonly text: string }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (chunk) => (text = (text + chunk.toString('latin1')).slice(-64 * 1024)));
  socket.on('error', () => {});
  socket.write(raw);
  // It may be closed before all is written.
  await new Promise((resolve) => socket.once('close', resolve));
  const status = Number(/.*HTTP\/1\.1 (\d{3})/s.exec(text)?.[1] ?? 0);
  return { status, text: text.slice(-SHOWN) };
}

parentPort!.on('message', async (order: Order | 'close') => {
  if (order === 'close') {
    agent.destroy();
    provider.stop();
    parentPort!.close();
  } else parentPort!.postMessage(await sendAll(order));
});
parentPort!.postMessage(provider.url);
