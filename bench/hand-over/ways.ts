import { fork } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { ANSWER_BYTES, COUNT, PLACE, QUESTION, type Setup } from './answerer.ts';

/** Somebody who answers questions. */
export interface Asked {
  /** Resolves when the answer is here. Questions of one turn of the event loop go in one message. */
  ask(): Promise<void>;
  /** CPU microseconds of this process and of the one that answers, all threads. */
  cpuMicros(): Promise<number>;
  /** Emits `exit` after `close`; null if there is nobody. */
  readonly ends: EventEmitter | null;
  close(): void;
}

const ANSWERER = new URL('./answerer.ts', import.meta.url);

const own = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** Collects the questions of a turn for `send`. `answered` is told how many answers have come; they are in order. */
function inTurns(send: (questions: number) => void) {
  const waiting: (() => void)[] = [];
  let asked = 0;
  const flush = () => {
    const questions = asked;
    asked = 0;
    send(questions);
  };
  return {
    ask: () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve);
        asked += 1;
        if (asked === 1) setImmediate(flush);
      }),
    answered(count: number) {
      for (const resolve of waiting.splice(0, count)) resolve();
    },
  };
}

async function otherProcess(): Promise<Asked> {
  const child = fork(fileURLToPath(ANSWERER), { stdio: ['inherit', 'inherit', 'inherit', 'pipe', 'ipc'] });
  await once(child, 'message');
  const socket = child.stdio[3] as Socket;
  const { ask, answered } = inTurns((questions) => socket.write(QUESTION.repeat(questions)));
  let bytes = 0;
  socket.on('data', (data: Buffer) => {
    bytes += data.byteLength;
    answered(Math.floor(bytes / ANSWER_BYTES));
    bytes %= ANSWER_BYTES;
  });
  return {
    ask,
    async cpuMicros() {
      child.send('cpu');
      const [{ user, system }] = (await once(child, 'message')) as [NodeJS.CpuUsage];
      return own() + user + system;
    },
    ends: child,
    close: () => socket.destroy(),
  };
}

async function thread(isWaiting: boolean): Promise<Asked> {
  const memory = new SharedArrayBuffer(PLACE + QUESTION.length * 64);
  const setup: Setup = { memory: isWaiting ? memory : null };
  const worker = new Worker(ANSWERER, { workerData: setup });
  await once(worker, 'message');
  const count = new Int32Array(memory, 0, COUNT + 1);
  const place = Buffer.from(memory, PLACE);
  const { ask, answered } = inTurns((questions) => {
    if (!isWaiting) return worker.postMessage(QUESTION.repeat(questions));
    place.write(QUESTION.repeat(questions));
    Atomics.add(count, COUNT, questions);
    Atomics.notify(count, COUNT);
  });
  worker.on('message', (answers: string) => answered(answers.length / ANSWER_BYTES));
  return { ask, cpuMicros: () => Promise.resolve(own()), ends: worker, close: () => void worker.terminate() };
}

function nobody(): Promise<Asked> {
  const { ask, answered } = inTurns((questions) => answered(questions));
  return Promise.resolve({ ask, cpuMicros: () => Promise.resolve(own()), ends: null, close: () => {} });
}

export const WAYS: Readonly<Record<string, () => Promise<Asked>>> = {
  nobody,
  process: otherProcess,
  thread: () => thread(false),
  'waiting thread': () => thread(true),
};
