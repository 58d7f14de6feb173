import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { bystand, type Fare } from '../test/support/bystander.ts';
import { startGateway } from '../test/support/gateway.ts';
import type { Order, Outcome } from './stalls/crew.ts';
import { stallsAt, watchedAt } from '../test/support/loop-stalls.ts';
import type { Stalls } from '../test/support/loop-watch.ts';
import { configurationOf, shapesOf, type Shape } from './stalls/shapes.ts';

/* `node bench/stalls.ts [--width 2] [--rounds 3] [part of a shape's name …]`: how long the worst requests and
   replies delay all others. The gateway is another process and reports the stalls of its event loop. For each shape
   it prints the median and the maximum of each round's longest stall, the longest time that the loop itself computed
   without a break, the longest pause of the garbage collector, and the duration of a second caller's calls at the
   same time. */
const LIMIT_MS = 100;
const BYSTANDER_CALLS = 10;
const args = process.argv.slice(2);
const option = (name: string, otherwise: number): number => {
  const at = args.indexOf(`--${name}`);
  return at === -1 ? otherwise : Number(args.splice(at, 2)[1]);
};
const width = option('width', 2);
const rounds = option('rounds', 3);

const directory = mkdtempSync(join(tmpdir(), 'tollgate-stalls-'));
const socketPath = join(directory, 'loop.sock');
const crew = new Worker(new URL('./stalls/crew.ts', import.meta.url));
const heard = async <T>() => ((await once(crew, 'message')) as [T])[0];
const provider = await heard<string>();
const gateway = await startGateway({
  toml: configurationOf(provider),
  env: { TEST_UPSTREAM_KEY: 'upstream-key', ...watchedAt(socketPath) },
});
try {
  const { key } = await gateway.openAccount('greedy', 1_000);
  const { key: other } = await gateway.openAccount('bystander', 10);
  const shapes = shapesOf({ origin: gateway.baseUrl, key, provider }).filter(
    ({ name }) => args.length === 0 || args.some((part) => name.includes(part)),
  );
  const agent = new Agent({ keepAlive: true });
  const call = () => small(agent, other);
  await bystand({ call, calls: 30 });
  await stalls();
  const rest = await bystand({ call, calls: 50 });
  console.log(
    `load ${loadavg()[0]!.toFixed(1)}, ${width} at once, ${rounds} rounds. At rest: ${line(rest, [await stalls()])}\n`,
  );
  console.log(
    '| shape | median of the longest, ms | longest, ms | loop’s own, ms | garbage, ms | others’ median, ms | others’ longest, ms | answered |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |');
  for (const shape of shapes) await measure(shape, call);
  agent.destroy();
} finally {
  crew.postMessage('close');
  await gateway.stop();
  rmSync(directory, { recursive: true });
}

async function measure(shape: Shape, call: () => Promise<boolean>): Promise<void> {
  const seen: Stalls[] = [];
  const fares: Fare[] = [];
  let outcome: Outcome | null = null;
  for (let round = -1; round < rounds; round++) {
    await shape.before?.();
    await stalls();
    crew.postMessage({ ...shape.order, width, times: shape.order.times ?? 1 } satisfies Order);
    const answered = heard<Outcome>();
    const fare = bystand({ call, calls: BYSTANDER_CALLS, everyMs: 5 });
    outcome = await answered;
    const fared = await fare;
    const stalled = await stalls();
    // The first round only compiles code and fills caches.
    if (round < 0) continue;
    seen.push(stalled);
    fares.push(fared);
  }
  const worst = {
    tried: 0,
    served: 0,
    medianMs: median(fares.map(({ medianMs }) => medianMs)),
    p95Ms: Math.max(...fares.map(({ p95Ms }) => p95Ms)),
    p99Ms: Math.max(...fares.map(({ p99Ms }) => p99Ms)),
    worstMs: Math.max(...fares.map(({ worstMs }) => worstMs)),
  };
  const { statuses, refusal } = outcome!;
  const answers = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
  const over = median(seen.map(({ delayMs }) => delayMs)) > LIMIT_MS ? ' **>**' : '';
  console.log(
    `| ${shape.name}${over} | ${line(worst, seen)} | ${answers} |${refusal === '' ? '' : ` ${refusal.replace(/\s+/g, ' ').slice(-160)}`}`,
  );
}

function line(fare: Fare, seen: readonly Stalls[]): string {
  const delays = seen.map(({ delayMs }) => delayMs);
  const figures = [
    median(delays),
    Math.max(...delays),
    Math.max(...seen.map(({ cpuMs }) => cpuMs)),
    Math.max(...seen.map(({ garbageMs }) => garbageMs)),
    fare.medianMs,
    fare.worstMs,
  ];
  return figures.map((figure) => figure.toFixed(0)).join(' | ');
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[figures.length >> 1]!;
}

/** The gateway's stalls since the last request for them. */
function stalls(): Promise<Stalls> {
  return stallsAt(socketPath);
}

async function small(agent: Agent, key: string): Promise<boolean> {
  const asked = request(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
  });
  asked.end('{"model":"stalls/small","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}');
  const [response] = (await once(asked, 'response')) as [import('node:http').IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode === 200;
}
