import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { BOUNDS } from '#wire';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { startGateway, type Gateway } from '../../../support/gateway.ts';
import { stallsAt, watchedAt } from '../../../support/loop-stalls.ts';
import { someOf } from '../../../support/some-of.ts';
import { BEYOND, within } from './shapes.ts';

/** A gateway, and one server that is every upstream of it: what a row says, it answers. */
export interface World {
  readonly gateway: Gateway;
  readonly key: string;
  /** `http://127.0.0.1:<port>`. */
  readonly upstream: string;
  readonly socketPath: string;
  /** The same of other programs, whose turns may be as long as those of the gateway. */
  readonly others?: readonly string[];
  /** Asks the gateway with the key, and reads the answer. Resolves with its status and its beginning. */
  ask(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<string>;
  stop(): Promise<void>;
}

/** A request that came to an upstream. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

export interface Answer {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
}

/** What comes from a stranger, and how it is asked for. */
export interface Row {
  /** The bound that its reader has. */
  readonly bound: keyof typeof BOUNDS;
  /** The most bytes of its text, if that is neither its bound's nor 8 MiB. */
  readonly bytesMax?: number;
  /** The worst values, if not all of 8 MiB and all within the bound. */
  readonly shapes?: Readonly<Record<string, () => string>>;
  /** The worst value stands where a text does. */
  readonly isText?: boolean;
  /** What an upstream answers, with the worst value in it. null: as it answers to all rows. */
  readonly answer?: (asked: Asked, junk: string) => Answer | null;
  /** What the client does. Resolves when all is read. */
  readonly act: (world: World, junk: string) => Promise<unknown>;
  /** On a socket of the Realtime API, after it is opened. */
  readonly event?: (junk: string) => string;
}

const SESSION = '{"type":"session.created","session":{"type":"realtime","id":"s"}}';

let current: { readonly row: Row; readonly junk: string } | null = null;

/** How an upstream answers apart from what is tested. */
export type Usual = (asked: Asked) => Answer;

export async function startWorld(tomlOf: (upstream: string) => string, usual: Usual): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-worst-'));
  const socketPath = join(directory, 'loop.sock');
  const answers = async (request: IncomingMessage) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const asked = { method: request.method!, path: request.url!, body: Buffer.concat(chunks).toString() };
    return (current === null ? null : current.row.answer?.(asked, current.junk)) ?? usual(asked);
  };
  const server = createServer((request, response) => {
    void answers(request).then(({ status = 200, type = 'application/json', body }) =>
      response.writeHead(status, { 'content-type': type }).end(body),
    );
  }).listen(0, '127.0.0.1');
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket: WebSocket) => {
    socket.on('error', () => {});
    socket.on('message', (data) => {
      if (String(data).startsWith('{"type":"session.update"')) socket.send(SESSION.replace('created', 'updated'));
      else {
        if (current?.row.event) socket.send(current.row.event(current.junk));
        socket.send('{"type":"input_audio_buffer.cleared"}');
      }
    });
    socket.send(SESSION);
  });
  await once(server, 'listening');
  const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await startGateway({
    toml: tomlOf(upstream),
    env: { TEST_UPSTREAM_KEY: 'upstream-key', ...watchedAt(socketPath) },
  });
  const { key } = await gateway.openAccount('greedy', 1_000);
  return {
    gateway,
    key,
    upstream,
    socketPath,
    async ask(path, body, headers = {}) {
      const isRaw = typeof body === 'string' || body instanceof FormData;
      const response = await fetch(gateway.baseUrl + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: isRaw ? body : JSON.stringify(body),
      });
      const text = await response.text();
      return `${response.status} ${text.slice(0, 400)}`;
    },
    async stop() {
      await gateway.stop();
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
      rmSync(directory, { recursive: true });
    },
  };
}

/**
 * The most CPU time in ms of one turn, without the garbage collector's pauses in it. Each row is below 30 where nothing
 * else runs; what a machine with other guests slows down most takes up to 1.9 times as much as the references say. A
 * text that is read without a bound takes more than ten times as much.
 */
const TURN_MS = 60;

/** The system counts the time in steps of 4 to 10 ms. */
function isShort(ms: number): boolean {
  return ms <= atThisLoad(TURN_MS) || ms <= TURN_MS * slowness();
}

/**
 * Texts with the CPU time in ms of their reading where the rows were below 30. The short ones are all over the memory,
 * so another guest of the host slows them more.
 */
const REFERENCES: readonly (readonly [text: Buffer, ms: number])[] = [
  [Buffer.from(`"${'a'.repeat(8_200_000)}\u00e9"`), 12],
  [Buffer.from(JSON.stringify(Array.from({ length: 150_000 }, (_, index) => `t${index}`))), 24],
];

/** How much slower this machine is now than that one. The first readings are slower everywhere. */
const slowness = () => Math.max(...REFERENCES.map(([text, ms]) => readingMs(text) / ms));

function readingMs(text: Buffer): number {
  const times = Array.from({ length: 6 }, () => {
    const before = process.threadCpuUsage();
    JSON.parse(text.toString());
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  });
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
}

const TRIES = 3;

/**
 * Tries it until its longest turn is short, three times at most. Each try is judged by the machine of its time. The
 * first reply of a kind compiles code, and a machine may count the time of others.
 */
export async function shortTurn(longestMs: () => Promise<number>): Promise<{ isShort: boolean; turns: number[] }> {
  const turns: number[] = [];
  while (turns.length < TRIES) {
    const ms = Math.round(await longestMs());
    turns.push(ms);
    if (isShort(ms)) return { isShort: true, turns };
  }
  return { isShort: false, turns };
}

/** Tests each row with all shapes: no turn of the event loop is long. */
export function testRows(rows: Readonly<Record<string, Row>>, world: () => World): void {
  const entries = Object.entries(rows).map(([name, row], at) => [name, row, at] as const);
  describe.each(entries)('%s', (_name, row, at) => {
    const all = Object.entries(row.shapes ?? { ...BEYOND, ...within({ ...BOUNDS[row.bound], ...row }) });
    const shapes = all.filter(([, make]) => !row.isText || make().startsWith('"'));
    it.each(someOf(shapes, 3, at))('with %s', async (_shape, make) => {
      const junk = make();
      const { socketPath, others = [] } = world();
      const works = () => Promise.all([socketPath, ...others].map(async (path) => (await stallsAt(path)).workMs));
      let [said, worst]: unknown[] = [];
      const { isShort: passes, turns } = await shortTurn(async () => {
        current = { row, junk: '0' };
        said = await row.act(world(), '0');
        current = { row, junk };
        await works();
        worst = await row.act(world(), junk);
        const worked = await works();
        current = null;
        return Math.max(...worked);
      });
      if (process.env['WORST_SHOWN'] === '1')
        console.log(
          `@@ ${_name} | ${_shape} | ${turns.join(' ')} | ${String(said).slice(0, 60)} | ${String(worst).slice(0, 150)}`,
        );
      expect(passes, turns.join(', ')).toBe(true);
    });
  });
}
