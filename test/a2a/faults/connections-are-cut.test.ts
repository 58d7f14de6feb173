import { afterEach, beforeAll, expect, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { openSocket } from '../../support/raw-http.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import type { Version } from '../contract/shapes.ts';
import { createTalk } from '../contract/client-calls.ts';
import { answerOf, startCutAgent, type CutOrder, type Outcome } from './support/cut-agent.ts';
import { inTurn } from './support/money-of-calls.ts';
import { atThisLoad } from '../../support/at-this-load.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// The connection of a client or of an agent is cut at any byte of a message, in either direction. The agent goes on
// with what it began: a task that its client was told of is settled by its end, one that nobody heard of costs
// nothing, and no lock stays.

const POSITIONS = process.env['TOLLGATE_DEEP'] === '1' ? 3_000 : 150;
const PRICE = 1_000n;
const FORMATS = ['stream', 'artifact-first', 'answer', 'promise'] as const;
const OUTCOMES = ['COMPLETED', 'FAILED'] as const;
const CASES = FORMATS.flatMap((format) => OUTCOMES.map((outcome) => ({ format, outcome })));
/**
 * Of each case a third where the agent breaks off, twice a sixth where it does so while it is asked and where the
 * client does, a third where it leaves.
 */
const EACH = Math.ceil(POSITIONS / CASES.length / 3);
const FEW = Math.ceil(EACH / 2);
const AT_ONCE = 8;
/** Longer than a task is not looked at after its beginning. */
const POLL_MS = 5_000;
/** As long as looks take that see the end of the tasks. */
const SETTLED_MS_MAX = 5_000;

/** Moved on, so that looks at tasks are due at once. */
const clock = { ahead: 0 };
let made = 0;
let done = 0;
let charged = 0;
const agent = ofFile(startCutAgent, (one) => one.close());
const spine = spineOfFile(() => ({
  now: () => Date.now() + clock.ahead,
  toml: `${UNHURRIED}\n[upstream]\ncooldown_ms = 0\n[billing]\ndrain_ms = 3000\n[tasks]\nlook_ms_max = 1000\n${agentBlock({ name: 'cut/agent', endpoint: agent.url })}`,
}));
beforeAll(async () => {
  await ask(order('answer', 'COMPLETED', null), '1.0');
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

/** All of one length. */
const order = (format: CutOrder['format'], outcome: Outcome, at: number | null, waitMs?: number): CutOrder => ({
  task: `task-${String(++made).padStart(6, '0')}`,
  format,
  outcome,
  at,
  ...(waitMs === undefined ? {} : { waitMs }),
});

const versionOf = (index: number): Version => (index % 2 === 0 ? '1.0' : '0.3');

/** A message as a client of a version writes it. */
function bodyOf(asked: CutOrder, version: Version): string {
  const streams = asked.format === 'stream' || asked.format === 'artifact-first';
  const names =
    version === '1.0'
      ? { send: 'SendMessage', stream: 'SendStreamingMessage' }
      : { send: 'message/send', stream: 'message/stream' };
  const text = JSON.stringify(asked);
  const message =
    version === '1.0'
      ? { messageId: `for-${asked.task}`, role: 'ROLE_USER', parts: [{ text }] }
      : { kind: 'message', messageId: `for-${asked.task}`, role: 'user', parts: [{ kind: 'text', text }] };
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 'one',
    method: streams ? names.stream : names.send,
    params: { message },
  });
}

const headersOf = (version: Version) => ({
  authorization: `Bearer ${spine.key}`,
  'content-type': 'application/json',
  ...(version === '1.0' ? { 'a2a-version': '1.0' } : {}),
});

async function ask(asked: CutOrder, version: Version): Promise<string> {
  const response = await fetch(`${spine.origin}/a2a/cut/agent`, {
    method: 'POST',
    headers: headersOf(version),
    body: bodyOf(asked, version),
  });
  return response.text();
}

/** Positions from 0 to `bytes`, both among them. */
const spread = (bytes: number, count: number) =>
  Array.from({ length: count }, (_, index) => Math.round((index * bytes) / (count - 1)));

const CHARGED = {
  name: 'test/charged-of-task',
  text: 'SELECT l.charged AS charged FROM task_calls c JOIN locks l ON l.id = c.call_id WHERE c.task_id = $1',
};
const KNOWN = { name: 'test/task-of-id', text: 'SELECT state FROM tasks WHERE task_id = $1' };

/** What was charged meanwhile; all locks are resolved within the time, and nothing stays open. */
async function paid(run: () => Promise<unknown>): Promise<bigint> {
  const before = await spine.balance();
  await run();
  const endedAt = performance.now();
  clock.ahead += POLL_MS;
  await spine.quiet();
  expect(performance.now() - endedAt).toBeLessThan(atThisLoad(SETTLED_MS_MAX));
  await until(async () => /^tollgate_calls_in_flight 0$/m.test(await spine.app.metrics.text()));
  const amount = before.available - (await spine.balance()).available;
  charged += Number(amount / PRICE);
  return amount;
}

/** The task is there for its client, as its agent left it, and was charged so. */
async function isKept({ task, outcome, format }: CutOrder, version: Version): Promise<void> {
  const talk = createTalk({ url: `${spine.origin}/a2a/cut/agent`, headers: headersOf(version) }, version, 'JSONRPC');
  expect((await talk.get(task)).state).toBe(outcome.toLowerCase());
  const [row] = await spine.app.database.query(CHARGED, [task]);
  // One that is over with its first answer has no call that waits for it.
  if (format !== 'answer') expect([task, row?.['charged']]).toEqual([task, outcome === 'COMPLETED' ? PRICE : 0n]);
}

test.each(CASES)(
  'the agent breaks off its answer ($format, $outcome): what its client heard of is settled by its end, the rest is free',
  async ({ format, outcome }) => {
    const { bytes, whole } = answerOf(order(format, outcome, null), 'gen-000000000000000000');
    const cuts = spread(bytes.byteLength, EACH).map((at) => order(format, outcome, at));
    const told: CutOrder[] = [];
    const amount = await paid(() =>
      inTurn(cuts, AT_ONCE, async (asked, index) => {
        const text = await ask(asked, versionOf(index));
        done += 1;
        if (text.includes(`"${asked.task}"`)) told.push(asked);
        // Whatever did not come whole is an error in the end, and no broken answer.
        expect([asked.at, /"error":\{"code":-?\d+,"message":"[^"]+/.test(text)]).toEqual([asked.at, asked.at! < whole]);
      }),
    );
    expect(amount).toBe(outcome === 'COMPLETED' ? BigInt(told.length) * PRICE : 0n);
    await inTurn(told, AT_ONCE, (asked, index) => isKept(asked, versionOf(index)));
    for (const asked of cuts)
      if (!told.includes(asked)) expect(await spine.app.database.query(KNOWN, [asked.task])).toEqual([]);
    expect(told.length).toBeGreaterThan(0);
  },
);

test.each(CASES.filter(({ outcome }) => outcome === 'COMPLETED'))(
  'the agent breaks off while it is asked ($format): free, and not asked again',
  async ({ format }) => {
    await paid(() => ask(order(format, 'FAILED', null), '1.0'));
    for (const at of spread(agent.requestBytes, FEW * 2)) {
      const asked = order(format, 'COMPLETED', null);
      agent.cutRequestAt = Math.max(1, at);
      const amount = await paid(async () =>
        expect([at, await ask(asked, '1.0')]).toEqual([at, expect.stringContaining('"error"')]),
      );
      expect([at, amount, agent.outcomes.has(asked.task)]).toEqual([at, 0n, false]);
      done += 1;
    }
  },
);

function requestOf(asked: CutOrder, version: Version): Buffer {
  const body = bodyOf(asked, version);
  const headers = {
    host: new URL(spine.origin).host,
    ...headersOf(version),
    'content-length': String(Buffer.byteLength(body)),
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST /a2a/cut/agent HTTP/1.1\r\n${head.join('')}\r\n${body}`);
}

test.each(CASES.filter(({ outcome }) => outcome === 'COMPLETED'))(
  'the client breaks off its request ($format): nothing happens, unless all of it had come',
  async ({ format }) => {
    const positions = spread(requestOf(order(format, 'COMPLETED', null), '1.0').byteLength, FEW * 2);
    const cuts = positions.map((at) => ({ at, asked: order(format, 'COMPLETED', null) }));
    const last = cuts.at(-1)!;
    const amount = await paid(() =>
      inTurn(cuts, AT_ONCE, async ({ at, asked }) => {
        const socket = await openSocket(spine.origin);
        const request = requestOf(asked, '1.0');
        socket.write(request.subarray(0, at));
        if (at === request.byteLength) await until(() => agent.outcomes.has(asked.task));
        socket.end();
        socket.resume();
        await new Promise((resolve) => socket.once('close', resolve));
        done += 1;
      }),
    );
    expect(cuts.filter(({ asked }) => agent.outcomes.has(asked.task))).toEqual([last]);
    expect(amount).toBe(PRICE);
    await isKept(last.asked, '1.0');
  },
);

test.each(CASES)(
  'the client leaves in its answer ($format, $outcome): the task goes on, and is settled by its end',
  async ({ format, outcome }) => {
    let length = 0;
    await paid(
      async () => (length = (await readUntil(requestOf(order(format, outcome, null), '1.0'), Infinity)).byteLength),
    );
    const positions = spread(length, EACH);
    const cuts = positions.map((at, index) => ({
      at,
      version: versionOf(index),
      asked: order(format, outcome, null, 30),
    }));
    const amount = await paid(() =>
      inTurn(cuts, AT_ONCE, async ({ at, asked, version }) => {
        await readUntil(requestOf(asked, version), at, () => agent.outcomes.has(asked.task));
        done += 1;
      }),
    );
    expect(amount).toBe(outcome === 'COMPLETED' ? BigInt(cuts.length) * PRICE : 0n);
    await inTurn(cuts, AT_ONCE, ({ asked, version }) => isKept(asked, version));
  },
);

/** Sends a request and leaves when so many bytes of the answer have come, or it has ended. */
async function readUntil(request: Buffer, at: number, begun: () => boolean = () => true): Promise<Buffer> {
  const socket = await openSocket(spine.origin);
  let bytes: Buffer = Buffer.alloc(0);
  const left = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.byteLength >= at || isWhole(bytes)) socket.destroy();
    });
  });
  socket.write(request);
  if (at === 0) {
    await until(begun);
    socket.destroy();
  }
  await left;
  return bytes;
}

function isWhole(bytes: Buffer): boolean {
  const text = bytes.toString('latin1');
  const length = /content-length: (\d+)/i.exec(text);
  if (length === null) return text.endsWith('\r\n0\r\n\r\n');
  return bytes.byteLength >= text.indexOf('\r\n\r\n') + 4 + Number(length[1]);
}

test('so many positions were tried', () => {
  console.log(`  ${done} cuts, ${charged} calls charged`);
  expect(done).toBeGreaterThanOrEqual(POSITIONS * 0.9);
});
