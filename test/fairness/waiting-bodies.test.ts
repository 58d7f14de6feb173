import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { openSocket, readAnswer } from '../support/raw-http.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';

// Large bodies that do not fit wait for their turn. The memory for bodies is small here: 4 MiB, of which an account and
// a network may use 1 MiB each, so one body of 900 KB. Eight bodies may wait, two of an account and two of a network.

const MIB = 1024 * 1024;
const LARGE = 900_000;
/** Long enough to fill the queue. Uploads that fall silent after their first bytes are given up after 20 s. */
const WAIT_MS = Math.min(atThisLoad(4_000), 15_000);

let spine: Spine;
let honest: Spine;
const limits = (more: string) =>
  `[server]\ntrusted_proxies = ["127.0.0.1"]\n` +
  `[limits]\nrequests_per_minute = 1000000\nburst = 1000000\nbodies_bytes_max = ${4 * MIB}\nmedia_body_bytes_max = ${MIB}\n` +
  `chat_body_bytes_max = 262144\nbody_bytes_max = 131072\nupload_bytes_per_second_min = 1\n${more}`;
beforeAll(async () => {
  spine = await startSpine({ toml: limits(`bodies_wait_ms = ${WAIT_MS}\nbodies_waiting_max = 8\n`) });
  honest = await startSpine({ toml: limits('') });
});
afterAll(async () => {
  await spine.stop();
  await honest.stop();
});

const open = new Set<Socket>();
afterEach(async () => {
  for (const socket of open) socket.destroy();
  open.clear();
  await held(0);
  await waiting(0);
  for (const each of [spine, honest]) expect(await each.faults()).toEqual([]);
});

const bodies = () => spine.app.server.requestBodies;
async function held(bytes: number): Promise<void> {
  await expect.poll(() => bodies().heldBytes(), { timeout: 30_000, interval: 10 }).toBe(bytes);
}
async function waiting(count: number): Promise<void> {
  await expect.poll(() => bodies().waitingCount(), { timeout: 30_000, interval: 10 }).toBe(count);
}

let named = 0;
const keyOf = async () => (await spine.tenant(`waits-${(named += 1)}`, '1')).key;

interface Upload {
  readonly key?: string;
  readonly from?: string;
  readonly length?: number;
  readonly body?: string;
}

/** Sends the head of a request to an endpoint that refuses its body, when the body has arrived. */
async function begin({ key = spine.key, from = '10.0.0.1', length = LARGE, body = '' }: Upload = {}) {
  const socket = await openSocket(spine.origin);
  open.add(socket);
  const read = readAnswer(socket);
  const status = read.then((answer) => answer.status);
  // The connections that a test leaves open are closed after it.
  status.catch(() => {});
  socket.write(
    `POST /api/v1/image/edit HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${from}\r\ncontent-type: application/json\r\n` +
      `authorization: Bearer ${key}\r\ncontent-length: ${length}\r\n\r\n${body}`,
  );
  return {
    status,
    answer: read,
    socket,
    /** Sends the whole body, which is no JSON. */
    finish: () => socket.write('x'.repeat(length - body.length)),
  };
}
type Begun = Awaited<ReturnType<typeof begin>>;

/** Begins an upload that has its memory and falls silent. */
async function running(upload: Upload = {}): Promise<Begun> {
  const before = bodies().heldBytes();
  const begun = await begin({ body: 'x'.repeat(100), ...upload });
  await held(before + (upload.length ?? LARGE));
  return begun;
}

/** Begins an upload that waits. */
async function queued(upload: Upload = {}): Promise<Begun> {
  const before = bodies().waitingCount();
  const begun = await begin(upload);
  await waiting(before + 1);
  return begun;
}

const messageOf = (body: string) => (JSON.parse(body) as { error: { message: string } }).error.message;

describe('a large body that does not fit', () => {
  test('waits unread, and is served when one of its account has ended', async () => {
    const first = await running();
    const second = await queued({ from: '10.0.0.2' });
    const written = new Promise<void>((resolve) => second.socket.write('x'.repeat(LARGE), () => resolve()));
    expect((await spine.post('/chat/completions', ask('hello !tokens:1'))).status).toBe(200);
    await held(LARGE);
    first.finish();
    expect(await first.status).toBe(400);
    await written;
    expect(await second.status).toBe(400);
  });

  test('is refused when its time is over, and its connection can be used again', async () => {
    await running();
    const begun = performance.now();
    const { answer, socket } = await queued({ from: '10.0.0.2' });
    const refused = await answer;
    expect(performance.now() - begun).toBeGreaterThanOrEqual(WAIT_MS - 10);
    expect([refused.status, refused.headers['retry-after'], messageOf(refused.body)]).toEqual([
      429,
      '2',
      expect.stringContaining('The large requests of this account'),
    ]);
    socket.write('x'.repeat(LARGE));
    const next = readAnswer(socket);
    socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n');
    expect((await next).status).toBe(200);
  });

  test('is refused at once if too many of its account, its network or of all wait', async () => {
    const [one, two] = [await keyOf(), await keyOf()];
    await running({ key: one, from: '10.0.1.1' });
    await queued({ key: one, from: '10.0.1.2' });
    await queued({ key: one, from: '10.0.1.3' });
    const third = await (await begin({ key: one, from: '10.0.1.4' })).answer;
    expect([third.status, messageOf(third.body)]).toEqual([429, expect.stringContaining('of this account')]);
    await running({ key: two, from: '10.0.1.5' });
    await queued({ key: await keyOf(), from: '10.0.1.5' });
    await queued({ key: await keyOf(), from: '10.0.1.5' });
    const near = await (await begin({ key: await keyOf(), from: '10.0.1.5' })).answer;
    expect([near.status, messageOf(near.body)]).toEqual([429, expect.stringContaining('of this network')]);
    for (const n of [6, 7]) await running({ key: await keyOf(), from: `10.0.1.${n}` });
    for (const n of [10, 11, 12]) await queued({ key: await keyOf(), from: `10.0.1.${n}` });
    // A site with many addresses leaves a place to another one.
    const wide = await (await begin({ key: await keyOf(), from: '10.0.1.13' })).answer;
    expect(wide.status).toBe(503);
    await queued({ key: await keyOf(), from: '10.0.9.13' });
    const last = await (await begin({ key: await keyOf(), from: '10.0.8.14' })).answer;
    expect([last.status, last.headers['retry-after']]).toEqual([503, '2']);
  });

  test('leaves its place if its client leaves', async () => {
    const first = await running();
    const gone = await queued({ from: '10.0.0.2' });
    const next = await queued({ from: '10.0.0.3' });
    gone.socket.destroy();
    await waiting(1);
    first.finish();
    await held(LARGE);
    next.finish();
    expect(await next.status).toBe(400);
  });
});

describe('turns', () => {
  test('go round over networks and accounts, and one with many bodies does not hold up another', async () => {
    // All memory is used. A stranger has two bodies that wait, and then another account has one.
    const holders: Begun[] = [];
    for (const n of [1, 2, 3, 4]) holders.push(await running({ key: await keyOf(), from: `10.0.2.${n}` }));
    const [busy, calm, beside] = [await keyOf(), await keyOf(), await keyOf()];
    const order: string[] = [];
    const note = (name: string, { status }: Begun) => void status.then(() => order.push(name)).catch(() => {});
    const queue: [string, Upload][] = [
      ['busy 1', { key: busy, from: '10.0.2.10' }],
      ['busy 2', { key: busy, from: '10.0.2.10' }],
      ['calm', { key: calm, from: '10.0.2.11' }],
      ['beside', { key: beside, from: '10.0.2.12' }],
    ];
    const begun: Begun[] = [];
    for (const [name, upload] of queue) {
      const body = 'x'.repeat(LARGE);
      const one = await queued({ ...upload, body });
      note(name, one);
      begun.push(one);
    }
    // One place becomes free, and each body that is served gives it on.
    holders[0]!.finish();
    await Promise.all(begun.map(({ status }) => status));
    expect(order).toEqual(['busy 1', 'calm', 'beside', 'busy 2']);
  });

  test('are kept for a body that waits for the memory of all', async () => {
    // 4 MiB without four bodies of 900 KB leave 594,304 bytes.
    const holders: Begun[] = [];
    for (const n of [1, 2, 3, 4]) holders.push(await running({ key: await keyOf(), from: `10.0.3.${n}` }));
    const large = await queued({ key: await keyOf(), from: '10.0.3.10' });
    const small = await queued({ key: await keyOf(), from: '10.0.3.11', length: 500_000 });
    expect(bodies().waitingCount()).toBe(2);
    holders[0]!.finish();
    // Now both fit.
    await held(4 * LARGE + 500_000);
    large.finish();
    small.finish();
    expect([await large.status, await small.status]).toEqual([400, 400]);
  });

  test('are not needed where the own share and the memory of all have room', async () => {
    await running();
    await queued({ from: '10.0.0.2' });
    const { status, finish } = await running({ key: await keyOf(), from: '10.0.0.3' });
    finish();
    expect(await status).toBe(400);
  });
});

test('24 large requests of one account at once are all served', async () => {
  const { key } = honest;
  const content = 'hello !tokens:1 '.padEnd(250_000, 'x');
  const answers = await Promise.all(
    Array.from({ length: 24 }, () =>
      honest.post('/chat/completions', ask(content), {
        authorization: `Bearer ${key}`,
        'x-forwarded-for': '10.0.4.1',
      }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(24).fill(200));
});

test('the metrics show how many wait', async () => {
  await running();
  await queued({ from: '10.0.0.2' });
  expect(await spine.app.metrics.text()).toMatch(/^tollgate_bodies_waiting 1$/m);
});
