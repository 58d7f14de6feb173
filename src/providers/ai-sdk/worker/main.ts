import { connect, performServerHandshake } from 'node:http2';
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { CALLS_FD, CONTROL_FD, FETCHES_FD, type FromWorker, type StartMessage, type ToWorker } from './messages.ts';
import { shut } from './shut.ts';
import { loadProvider } from './load-package.ts';
import { createFetch } from './outgoing-fetch.ts';
import { createAnswer } from './answer.ts';

/*
 * The process of one package of the AI SDK. It may read the files of packages, and may do nothing else on its machine:
 * no connection, no other file, no program (start-worker.ts). It answers calls of OpenAI's API for models and images.
 */

/** MiB that a session may hold. Pictures in requests are large, and one session carries all of them. */
const SESSION_MIB = 256;
const MIB = 1024 * 1024;

shut();
const control = new Socket({ fd: CONTROL_FD });
const tell = (message: FromWorker): void => void control.write(`${message}\n`);
// The process that started this one has ended.
control.on('close', () => process.exit());
control.on('error', () => process.exit());

const memoryMib = (): number => {
  try {
    return Math.round(process.memoryUsage.rss() / MIB);
  } catch {
    // There is no /proc to read it from, and then the process that started this one looks itself.
    return 0;
  }
};

createInterface({ input: control }).on('line', (line) => {
  const message = JSON.parse(line) as ToWorker;
  if (message === 'ping') return tell(`${memoryMib()}`);
  void start(message.start).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    tell(`failed ${why.replaceAll('\n', ' ').slice(0, 1_000)}`);
  });
});

async function start(message: StartMessage): Promise<void> {
  const fetches = connect('http://fetch', {
    createConnection: () => new Socket({ fd: FETCHES_FD }),
    maxSessionMemory: SESSION_MIB,
  });
  fetches.on('error', () => process.exit(1));
  const ownFetch = createFetch(fetches);
  // Some packages ignore the setting, and their helpers never see it.
  globalThis.fetch = ownFetch;
  const provider = await loadProvider(message, ownFetch);
  const answer = createAnswer({ provider, strangeFetch: createFetch(fetches, true) });
  const calls = performServerHandshake(new Socket({ fd: CALLS_FD }), { maxSessionMemory: SESSION_MIB });
  calls.on('error', () => process.exit(1));
  calls.on('close', () => process.exit());
  calls.on('stream', (stream, headers) => void answer(stream, headers));
  tell('ready');
}
