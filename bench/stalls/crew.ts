import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { NEW_ID } from './bodies.ts';
import { startProvider } from './provider.ts';

/** The requests to send. `raw` are bytes that are written to the socket instead of a request. */
export interface Order {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  readonly raw: Uint8Array | null;
  /** Number of concurrent requests, and number of repetitions. */
  readonly width: number;
  readonly times: number;
}

/**
 * Number of answers by status. 0 means that the connection broke. `refusal` is the beginning of an answer with a status
 * other than 2xx.
 */
export interface Outcome {
  readonly statuses: ReadonlyMap<number, number>;
  readonly refusal: string;
}

/* The provider of the worst answers and the sender of the worst requests, in a separate thread. So their cost
   doesn't slow down the clock of the second caller. The gateway is another process, in which its loop is measured. */
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

/** Returns the status of the last answer. The bytes must end with a request that closes the connection. */
async function sendRaw(url: string, raw: Uint8Array): Promise<{ readonly status: number; readonly text: string }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (chunk) => (text = (text + chunk.toString('latin1')).slice(-64 * 1024)));
  socket.on('error', () => {});
  socket.write(raw);
  // The connection may be closed before everything is written.
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
