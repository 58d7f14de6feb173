/** The load generator, in its own process. Gets one Job at a time from its parent and returns the JobResult. */
import { Worker } from 'node:worker_threads';
import { openConnection, type Connection, type Reply } from './connection.ts';
import { percentiles, type Job, type JobResult } from './job.ts';

/** If more requests than this are open at once, the target doesn't keep up at all. */
const OPEN_CONNECTIONS_MAX = 1_000;
const REPLY_LIMIT_MS = 20_000;

let held: Connection[] = [];

process.on('message', (message: Job | 'release') => {
  if (message === 'release') {
    for (const connection of held) connection.close();
    held = [];
    process.send!('released');
    return;
  }
  run(message).then(
    (result) => process.send!(result),
    (error: unknown) => process.send!({ failed: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));

interface Counter {
  readonly latency: number[];
  readonly firstByte: number[];
  errors: number;
  firstError: string;
}

async function run(job: Job): Promise<JobResult> {
  const counter: Counter = { latency: [], firstByte: [], errors: 0, firstError: '' };
  const cpu = process.cpuUsage();
  const begun = performance.now();
  if (job.shape.kind === 'closed') await closedLoop(job, job.shape, counter);
  else if (job.shape.kind === 'open') await openLoop(job, job.shape, counter);
  else await hold(job, job.shape.streams, counter);
  const elapsedMs = performance.now() - begun;
  const used = process.cpuUsage(cpu);
  return {
    calls: counter.latency.length,
    errors: counter.errors,
    firstError: counter.firstError,
    elapsedMs,
    latency: percentiles(counter.latency),
    firstByte: percentiles(counter.firstByte),
    generatorLoad: (used.user + used.system) / 1000 / elapsedMs,
  };
}

/** Counts the requests of all jobs, so that no number is sent twice. */
let sent = 0;

function requestsOf({ request, numberAt }: Job): () => Buffer {
  const bytes = Buffer.from(request, 'latin1');
  if (numberAt === undefined) return () => bytes;
  return () => {
    const copy = Buffer.from(bytes);
    copy.write(String(++sent).padStart(9, '0'), numberAt, 'latin1');
    return copy;
  };
}

function record(counter: Counter, since: number, reply: Reply): void {
  if (reply.ok) {
    counter.latency.push(reply.doneAt - since);
    counter.firstByte.push(reply.firstByteAt - since);
  } else {
    counter.errors++;
    counter.firstError ||= reply.error;
  }
}

type Closed = Extract<Job['shape'], { kind: 'closed' }>;

async function closedLoop(job: Job, shape: Closed, counter: Counter): Promise<void> {
  const nextRequest = requestsOf(job);
  let left = shape.callsMax ?? Infinity;
  const end = performance.now() + shape.durationMs;
  const connections = Array.from({ length: shape.connections }, () => openConnection(job.port));
  const loops = connections.map(
    (connection) =>
      new Promise<void>((resolve) => {
        const next = () => {
          const since = performance.now();
          if (since >= end || counter.errors > 100 || left-- <= 0) return resolve();
          connection.send(nextRequest(), (reply) => {
            record(counter, since, reply);
            next();
          });
        };
        next();
      }),
  );
  await within(Promise.all(loops), shape.durationMs + REPLY_LIMIT_MS, 'replies of the closed loop');
  for (const connection of connections) connection.close();
}

/**
 * The ticks come from a worker that sleeps with an accuracy of fractions of a millisecond, which timers don't have. If
 * no connection is free, a request opens a new one. So a slow reply doesn't delay later requests, and every delay is
 * part of the measured latency.
 */
async function openLoop(job: Job, shape: { perSecond: number; durationMs: number }, counter: Counter): Promise<void> {
  const nextRequest = requestsOf(job);
  const total = Math.round((shape.perSecond * shape.durationMs) / 1000);
  const idle: Connection[] = [];
  const all: Connection[] = [];
  let answered = 0;
  const finished = Promise.withResolvers<void>();
  const ticker = new Worker(new URL('./ticker.ts', import.meta.url), {
    workerData: { perSecond: shape.perSecond, total },
  });
  ticker.on('error', (error) => finished.reject(error));
  // Offset between performance.now() of this thread and the clock that both threads share.
  const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  ticker.on('message', (due: number) => {
    const since = due - offset;
    let connection = idle.pop();
    if (!connection) {
      if (all.length >= OPEN_CONNECTIONS_MAX)
        return finished.reject(new Error(`${OPEN_CONNECTIONS_MAX} requests are open: the target does not keep up`));
      connection = openConnection(job.port);
      all.push(connection);
    }
    const used = connection;
    used.send(nextRequest(), (reply) => {
      record(counter, since, reply);
      idle.push(used);
      if (++answered === total) finished.resolve();
    });
  });
  try {
    await within(finished.promise, shape.durationMs + REPLY_LIMIT_MS, 'replies of the open loop');
  } finally {
    await ticker.terminate();
    for (const connection of all) connection.close();
  }
}

async function hold(job: Job, streams: number, counter: Counter): Promise<void> {
  const nextRequest = requestsOf(job);
  // Opens a few at a time, because a thousand at once would measure the listen queue.
  const openOne = (): Promise<void> =>
    new Promise((resolve) => {
      const connection = openConnection(job.port);
      held.push(connection);
      const since = performance.now();
      const end = (reply: Reply) => {
        record(counter, since, reply);
        resolve();
      };
      connection.send(nextRequest(), end, () => {
        counter.latency.push(performance.now() - since);
        resolve();
      });
    });
  const lane = async (count: number) => {
    for (let index = 0; index < count; index++) await openOne();
  };
  const lanes = 20;
  await within(
    Promise.all(Array.from({ length: lanes }, () => lane(Math.ceil(streams / lanes)))),
    REPLY_LIMIT_MS,
    'streams to open',
  );
}

async function within<T>(work: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${ms} ms for ${what}`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
