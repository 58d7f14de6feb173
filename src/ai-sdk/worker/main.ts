import { connect, performServerHandshake } from 'node:http2';
import { Socket } from 'node:net';
import { CALLS_FD, FETCHES_FD, type FromWorker, type ToWorker } from './messages.ts';
import { loadProvider } from './load-package.ts';
import { createFetch } from './outgoing-fetch.ts';
import { createAnswer } from './answer.ts';

/*
 * The process of one package of the AI SDK. It may read the files of packages, and may do nothing else on its machine:
 * no connection, no other file, no program (start-worker.ts). It answers calls of OpenAI's API for models and images.
 */

/** MiB that a session may hold. Pictures in requests are large, and one session carries all of them. */
const SESSION_MIB = 256;

const tell = (message: FromWorker): void => void process.send?.(message);

// The one thing that the permissions do not forbid, and that no provider needs.
const sendNoSignal = () => {
  throw new Error('a package may send no signals');
};
process.kill = sendNoSignal;
// The process that started this one has ended.
process.once('disconnect', () => process.exit());

process.on('message', (message: ToWorker) => {
  if (message === 'ping') return tell('pong');
  void start(message).catch((error: unknown) => {
    tell({ failed: error instanceof Error ? error.message : String(error) });
    process.disconnect?.();
  });
});

async function start({ start: message }: Exclude<ToWorker, string>): Promise<void> {
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
