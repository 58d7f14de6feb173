import type { Generator } from './generator.ts';
import type { Job, JobResult } from './load/job.ts';
import {
  BURST_CONNECTIONS,
  FIRST_BYTE_PER_SECOND,
  OPEN_PER_SECOND,
  PACED_STREAMS,
  PROBE_PER_SECOND,
  SMALL_CONNECTIONS,
  type Plan,
} from './plan.ts';
import { cpuMicros, residentBytes } from './program.ts';
import type { Target } from './targets.ts';
import { MODELS } from './upstream/replies.ts';
import { warm, type Warmth } from './warm.ts';

/** The result of one job at one target, with the CPU time that the target's process used for it. */
export interface Sample extends JobResult {
  /** null if there is no gateway. */
  readonly cpuMicros: number | null;
}

export interface RoundSamples {
  readonly small: Sample;
  readonly open: Sample;
  readonly firstByte: Sample;
  readonly burst: Sample;
  readonly paced: Sample | null;
}

export interface MemorySample {
  readonly streams: number;
  /** Resident memory before the first stream, with `streams` open streams, and with twice as many. */
  readonly idleBytes: number;
  readonly baseBytes: number;
  readonly heldBytes: number;
  /** Small calls while the streams were open. */
  readonly probe: JobResult;
  /** The target's own report on its event loop during this time, or null. */
  readonly loopDelayMs: number | null;
}

const MESSAGES = [
  { role: 'system', content: 'You answer in one short paragraph, in plain words, without lists.' },
  {
    role: 'user',
    content:
      'What does a gateway between callers and providers of models do with a request, from its arrival to the settlement of its cost?',
  },
];

/** The body of a chat request. */
export const chatBody = (model: string, stream: boolean) => ({
  model,
  messages: MESSAGES,
  max_tokens: 256,
  temperature: 0.2,
  ...(stream ? { stream: true } : {}),
});

function requestText(target: Target, model: string, stream: boolean): string {
  const body = JSON.stringify(chatBody(model, stream));
  const headers = {
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...target.headers,
  };
  return `POST ${target.path} HTTP/1.1\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${body}`;
}

/** A job that requests one of the upstream's replies from `target`. */
export const jobFor = (target: Target, model: string, shape: Job['shape']): Job => ({
  port: target.port,
  request: requestText(target, model, model !== MODELS.small),
  shape,
});

async function measured(generator: Generator, target: Target, job: Job): Promise<Sample> {
  const before = target.pid === null ? null : cpuMicros(target.pid);
  const result = await generator.run(job);
  return { ...result, cpuMicros: target.pid === null || before === null ? null : cpuMicros(target.pid) - before };
}

/** The first calls of a target. Throws when they fail: a target that cannot do the work is not measured. */
export async function warmUp(generator: Generator, target: Target, warmth: Warmth): Promise<void> {
  await warm(generator, (shape) => jobFor(target, MODELS.small, shape), warmth);
  // A stream runs the same code for each of its events.
  const streams = { ...warmth, calls: warmth.calls / 10 };
  for (const model of [MODELS.short, MODELS.burst])
    await warm(generator, (shape) => jobFor(target, model, shape), streams);
}

/** All measurements of one round at one target. */
export async function measureRound(
  generator: Generator,
  target: Target,
  plan: Plan,
  round: number,
): Promise<RoundSamples> {
  const run = (model: string, shape: Job['shape']) => measured(generator, target, jobFor(target, model, shape));
  return {
    small: await run(MODELS.small, { kind: 'closed', connections: SMALL_CONNECTIONS, durationMs: plan.smallMs }),
    open: await run(MODELS.small, { kind: 'open', perSecond: OPEN_PER_SECOND, durationMs: plan.openMs }),
    firstByte: await run(MODELS.short, {
      kind: 'open',
      perSecond: FIRST_BYTE_PER_SECOND,
      durationMs: plan.firstByteMs,
    }),
    burst: await run(MODELS.burst, { kind: 'closed', connections: BURST_CONNECTIONS, durationMs: plan.burstMs }),
    // A paced stream takes longer than this, so each connection carries exactly one.
    paced:
      round < plan.pacedRounds
        ? await run(MODELS.paced, { kind: 'closed', connections: PACED_STREAMS, durationMs: 500 })
        : null,
  };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Measures a fresh gateway's memory for open, silent streams. The same number of streams is opened before the measured
 * ones. The first streams fill the heap's free space, so only the following ones show the cost of each.
 */
export async function measureMemory(
  generator: Generator,
  target: Target,
  streams: number,
): Promise<MemorySample | null> {
  if (target.pid === null) return null;
  const { pid } = target;
  const hold = async () => {
    const result = await generator.run(jobFor(target, MODELS.open, { kind: 'hold', streams }));
    if (result.errors > 0) throw new Error(`${result.errors} of ${streams} streams did not open: ${result.firstError}`);
    await pause(600);
    return residentBytes(pid);
  };
  await warmUp(generator, target, { calls: Infinity, msMax: 300 });
  await pause(400);
  const idleBytes = residentBytes(pid);
  const baseBytes = await hold();
  const heldBytes = await hold();
  await target.loopDelayMs?.();
  const probe = await generator.run(
    jobFor(target, MODELS.small, { kind: 'open', perSecond: PROBE_PER_SECOND, durationMs: 1000 }),
  );
  const loopDelayMs = (await target.loopDelayMs?.()) ?? null;
  await generator.release();
  return { streams, idleBytes, baseBytes, heldBytes, probe, loopDelayMs };
}
