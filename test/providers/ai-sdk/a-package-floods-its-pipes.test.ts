import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { PREFACE_BYTES } from '#wire/frame-meter';
import { createEgress } from '../../../src/providers/ai-sdk/egress.ts';
import { meteredPipe } from '../../../src/providers/ai-sdk/metered-pipe.ts';
import { PIECE_BYTES, readPaced } from '../../../src/providers/ai-sdk/read-paced.ts';
import { createPackageLog } from '../../../src/providers/ai-sdk/package-log.ts';
import { startWorker } from '../../../src/providers/ai-sdk/start-worker.ts';
import { installHostile, NO_WALL } from './support/hostile-package.ts';

// What a package sends is read and served in pieces, so that no flood takes the event loop of the gateway.

/** Both ends of a connection, as of the pipe to a process. */
async function pipe(): Promise<readonly [gateway: Socket, process: Socket]> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const process_ = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [gateway] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    for (const socket of [gateway, process_]) socket.destroy();
    server.close();
  });
  return [gateway, process_];
}

/** The most that `count` grew in one turn of the event loop, until `until` settles. */
async function mostInATurn(count: () => number, until: Promise<unknown>): Promise<number> {
  let most = 0;
  let before = count();
  let over = false;
  void until.finally(() => (over = true));
  while (!over) {
    await new Promise((done) => void setImmediate(done));
    most = Math.max(most, count() - before);
    before = count();
  }
  return most;
}

test('a pipe is read in small pieces, one in each turn, up to its bound', async () => {
  const [gateway, package_] = await pipe();
  const bound = 40 * PIECE_BYTES;
  let bytes = 0;
  let largest = 0;
  const bounded = Promise.withResolvers<void>();
  const more = readPaced(gateway, bound, (piece, isLast) => {
    bytes += piece.byteLength;
    largest = Math.max(largest, piece.byteLength);
    if (isLast) bounded.resolve();
  });
  package_.write(Buffer.alloc(bound + 1000, '\n'));
  expect(await mostInATurn(() => bytes, bounded.promise)).toBeLessThanOrEqual(2 * PIECE_BYTES);
  expect([bytes, largest]).toEqual([bound, PIECE_BYTES]);
  // The rest waits until it is asked for.
  more();
  package_.end();
  await once(gateway, 'end');
  expect(bytes).toBe(bound + 1000);
});

test('frames of a few bytes pass in turns, on both pipes of a package', async () => {
  const frames = 1_500;
  const passed = { calls: 0, fetches: 0 };
  const done = Promise.withResolvers<void>();
  const read = (name: keyof typeof passed) => (bytes: Buffer) => {
    passed[name] += bytes.byteLength / 10;
    if (Math.min(passed.calls, passed.fetches) >= frames) done.resolve();
  };
  const worker = startWorker({
    target: { kind: 'sdk', sdk: 'hostile', settings: { floods: frames }, secrets: {}, directory: installHostile() },
    egress: { serve: (pipe) => void pipe.on('data', read('fetches')), close: async () => {} },
    wall: NO_WALL,
    log: createPackageLog(() => {}),
    times: undefined,
  });
  onTestFinished(() => worker.kill());
  void worker.calls.then((pipe) => pipe.on('data', read('calls')));
  const most = [() => passed.calls, () => passed.fetches].map((count) => mostInATurn(count, done.promise));
  // A frame of one byte counts as four, of which there are 256 in a turn. A look may see those of two.
  for (const one of await Promise.all(most)) expect(one).toBeLessThanOrEqual(128);
});

interface Asks {
  readonly session: ClientHttp2Session;
  readonly gateway: Socket;
  /** Addresses that the package did not get. */
  readonly refused: string[];
  ask(url: string, body?: Buffer): ClientHttp2Stream;
}

async function startEgress(origins: readonly string[]): Promise<Asks> {
  const [gateway, package_] = await pipe();
  const egress = createEgress({ allowPrivate: false });
  const refused: string[] = [];
  egress.serve(meteredPipe(gateway, PREFACE_BYTES, expect.unreachable), {
    origins: new Set(origins),
    refused: (host) => void refused.push(host),
    flooded: () => expect.unreachable(),
  });
  const session = connectHttp2('http://fetch', { createConnection: () => package_, maxSessionMemory: 256 });
  session.on('error', () => {});
  onTestFinished(async () => {
    session.destroy();
    await egress.close();
  });
  await once(session, 'remoteSettings');
  return {
    session,
    gateway,
    refused,
    ask(url, body) {
      const { protocol, host, pathname } = new URL(url);
      const stream = session.request(
        {
          ':method': body === undefined ? 'GET' : 'POST',
          ':scheme': protocol.slice(0, -1),
          ':authority': host,
          ':path': pathname,
          ...(body === undefined ? {} : { 'content-length': String(body.byteLength) }),
        },
        { endStream: body === undefined },
      );
      stream.on('error', () => {}).resume();
      if (body !== undefined) stream.end(body);
      return stream;
    },
  };
}

test('requests of a package are served in turns of the event loop', async () => {
  const { ask, refused, session } = await startEgress([]);
  const { maxConcurrentStreams: many = 0 } = session.remoteSettings;
  const all = Array.from({ length: many }, (_, at) => once(ask(`http://127.0.0.1:1/${at}`), 'response'));
  expect(await mostInATurn(() => refused.length, Promise.all(all))).toBeLessThanOrEqual(32);
  expect(refused).toHaveLength(1_024);
});

/** A server that counts its connections and never says a word. */
async function startSilent() {
  const sockets: Socket[] = [];
  const enough = Promise.withResolvers<void>();
  let wanted = Infinity;
  const server = createServer((socket) => {
    if (sockets.push(socket.on('error', () => {})) === wanted) enough.resolve();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    reached(connections: number) {
      if (sockets.length >= connections) return;
      wanted = connections;
      return enough.promise;
    },
  };
}

test('a vendor that reads nothing fills no memory: the body stays in the process of the package', async () => {
  const { host, reached } = await startSilent();
  // It waits for the greeting of TLS, so nothing of a body can be sent on.
  const { ask, gateway } = await startEgress([`https://${host}`]);
  const body = Buffer.alloc(8 * 1024 * 1024);
  const many = 16;
  for (let at = 0; at < many; at++) ask(`https://${host}/${at}`, body);
  await reached(many);
  // Others pass meanwhile, as would the bodies.
  for (let at = 0; at < 50; at++) await once(ask('http://127.0.0.1:1/'), 'response');
  expect(gateway.bytesRead).toBeGreaterThan(many * 60_000);
  expect(gateway.bytesRead).toBeLessThan(many * 70_000);
});
