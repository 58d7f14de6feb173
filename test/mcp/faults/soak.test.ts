import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { callTool, toolToml, type A2aHandler } from '../calls/modern-post.ts';
import { events, json, startScripted, type Asked } from '../sessions/scripted-server.ts';
import {
  callIn,
  callMessage,
  endSession,
  listenIn,
  listenModern,
  openSession,
  send,
  type OldSession,
  type Said,
} from './clients.ts';

// Clients of both eras, at servers of both, do everything that MCP has, leave in the middle of it, and come back.
// Afterwards nothing is left of them.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const CLIENTS = 200;
const PHASE_MS = DEEP ? 60_000 : 1_500;
const PHASES = 3;
const PRICE = 1_000n;
const PAUSE_MS = 60;
/** What may be kept of one phase to the next: caches that fill up, and noise. */
const GROWTH_BYTES_MAX = 12 * 1024 * 1024;
const AFTER_ALL_TTLS_MS = 3 * 3_600_000;

const NOTE = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}\n\n';
const QUESTION =
  '"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}';
const ANSWER = { action: 'accept', content: {} };
const RESULT = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';
const ASKS = `{"resultType":"input_required","inputRequests":{"who":{${QUESTION}}},"requestState":"round-1"}`;

/** Tools: do, note (an event first), ask (its client), stop (never answers). */
async function startServers() {
  const modern = await startRawMcp(
    ({ method, params }) => {
      if (method === 'subscriptions/listen')
        return (response) =>
          void response
            .writeHead(200, { 'content-type': 'text/event-stream' })
            .write(NOTE.replace('message', 'subscriptions/acknowledged'));
      if (params['name'] === 'stop') return () => {};
      if (params['name'] === 'ask') return params['requestState'] === 'round-1' ? RESULT : ASKS;
      if (params['name'] !== 'note') return RESULT;
      return (response, { idText }) =>
        void response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .end(`${NOTE}data: {"jsonrpc":"2.0","id":${idText},"result":${RESULT}}\n\n`);
    },
    ['do', 'note', 'ask', 'stop'].map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`),
  );
  onTestFinished(() => modern.close());
  const asking = new Map<string, () => void>();
  let questions = 0;
  const legacy = await startScripted({
    answer({ http, message, session }, response) {
      const { id, method, params } = message;
      if (http === 'GET') return events(response).flushHeaders();
      if (method === undefined) return asking.get(`${session} ${String(id)}`)?.();
      if (method !== 'tools/call')
        return id === undefined ? undefined : json(response, { jsonrpc: '2.0', id, result: { tools: [] } });
      const whole = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${RESULT}}`;
      if (params!['name'] === 'do') return json(response, whole);
      events(response, NOTE);
      if (params!['name'] === 'note') return response.end(`data: ${whole}\n\n`);
      if (params!['name'] === 'stop') return undefined;
      const question = `q${questions++}`;
      const key = `${session} ${question}`;
      asking.set(key, () => {
        asking.delete(key);
        response.end(`data: ${whole}\n\n`);
      });
      return response.write(`data: {"jsonrpc":"2.0","id":"${question}",${QUESTION}}\n\n`);
    },
  });
  return { modern, legacy, asking };
}

test(
  `${CLIENTS} clients: the books are in order, every gauge goes back to 0, and the memory does not grow`,
  { timeout: 3_600_000 },
  async () => {
    const clock = { ahead: 0 };
    const { modern, legacy, asking } = await startServers();
    const spine = await startSpine({
      now: () => Date.now() + clock.ahead,
      credit: '10000',
      toml:
        `${UNHURRIED}listens_max = 1000\n[billing]\ndrain_ms = 50\nsweep_ms = 100\n[upstream]\ncooldown_ms = 0\n[mcp]\nsessions_max = 10000\n` +
        toolToml({ name: 'modern', url: modern.url }) +
        toolToml({ name: 'legacy', url: legacy.url }),
    });
    onTestFinished(() => spine.stop());
    const counter = { done: 0, left: 0, odd: [] as unknown[] };
    const limits = { at: 0, abandon: false };

    const clients = Array.from({ length: CLIENTS }, (_, index) => async () => {
      const service = index % 2 === 0 ? 'modern' : 'legacy';
      await (index % 4 < 2 ? runModern(spine, service, counter, limits) : runLegacy(spine, service, counter, limits));
    });
    const heaps: number[] = [];
    for (let phase = 1; phase <= PHASES; phase++) {
      limits.at = performance.now() + PHASE_MS;
      // The last leave their sessions as they are.
      limits.abandon = phase === PHASES;
      await Promise.all(clients.map((run) => run()));
      await spine.quiet();
      spine.logs.length = modern.asked.length = (legacy.asked as Asked[]).length = 0;
      heaps.push(heapAfterGc());
    }
    expect(counter.odd.slice(0, 5)).toEqual([]);
    const paid = 10_000_000_000n - (await spine.balance()).available;
    // Of a call whose client left, the answer may have come within the drain time.
    expect(paid).toBeGreaterThanOrEqual(BigInt(counter.done) * PRICE);
    expect(paid).toBeLessThanOrEqual(BigInt(counter.done + counter.left) * PRICE);

    expect(await gauge('sessions')).toBeGreaterThan(0);
    clock.ahead += AFTER_ALL_TTLS_MS;
    await until(async () => (await gauge('sessions')) === 0);
    expect([await gauge('held_calls'), await gauge('listens'), asking.size]).toEqual([0, 0, 0]);
    await until(async () => /^tollgate_calls_in_flight 0$/m.test(await spine.app.metrics.text()));
    // What is left at the legacy server are sessions that the gateway keeps for clients without one.
    await until(() => legacy.open.size <= 3);
    expect(await spine.faults()).toEqual([]);
    // Without the sessions that were left in the last phase.
    heaps.push(heapAfterGc());
    console.log(
      `  ${counter.done} calls, ${counter.left} left; heap ${heaps.map((bytes) => Math.round(bytes / 1024 / 1024)).join(', ')} MiB after the phases and after all sessions`,
    );
    expect(heaps.at(-1)! - heaps[0]!).toBeLessThan(GROWTH_BYTES_MAX);

    async function gauge(name: string): Promise<number> {
      return Number(new RegExp(`^tollgate_mcp_${name} (\\d+)$`, 'm').exec(await spine.app.metrics.text())![1]);
    }
  },
);

interface Counter {
  done: number;
  left: number;
  readonly odd: unknown[];
}
interface Until {
  readonly at: number;
  readonly abandon: boolean;
}

const chance = (of: number) => Math.random() < of;
const pause = () => new Promise((resolve) => setTimeout(resolve, Math.random() * PAUSE_MS));

async function runModern(door: A2aHandler, service: string, counter: Counter, end: Until): Promise<void> {
  const note = (message: Said) => {
    if (message.result?.['content'] === undefined) counter.odd.push(message);
    else counter.done++;
  };
  while (performance.now() < end.at) {
    const dice = Math.random();
    if (dice < 0.5) note((await callTool(door, service, chance(0.5) ? 'do' : 'note')).message);
    else if (dice < 0.7) {
      const first = await callTool(door, service, 'ask');
      const { inputRequests, requestState } = first.message.result ?? {};
      if (inputRequests === undefined) counter.odd.push(first.message);
      else {
        const inputResponses = { [Object.keys(inputRequests)[0]!]: ANSWER };
        note((await callTool(door, service, 'ask', {}, { params: { requestState, inputResponses } })).message);
      }
    } else if (dice < 0.9) {
      const leaving = new AbortController();
      setTimeout(() => leaving.abort(), Math.random() * 20);
      counter.left++;
      await callTool(door, service, chance(0.5) ? 'stop' : 'do', {}, { signal: leaving.signal }).catch(() => null);
    } else {
      const stream = await listenModern(door, service);
      await pause();
      stream.leave();
      await stream.over;
    }
    await pause();
  }
}

async function runLegacy(door: A2aHandler, service: string, counter: Counter, end: Until): Promise<void> {
  let session = await openSession(door, service);
  let id = 0;
  while (performance.now() < end.at) {
    const dice = Math.random();
    if (dice < 0.5) {
      const { message } = await callIn(session, chance(0.5) ? 'do' : 'note', {}, ++id);
      if (message.result) counter.done++;
      else counter.odd.push(message);
    } else if (dice < 0.65) {
      if (await answerAsked(session, ++id)) counter.done++;
      else counter.odd.push('an asking tool did not end');
    } else if (dice < 0.8) {
      counter.left++;
      const running = send(session, callMessage('stop', {}, ++id)).then((reply) => reply.text());
      await pause();
      await (
        await send(session, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
      ).text();
      // It may have come before the call that it is about.
      const late = setInterval(
        () =>
          void send(session, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }).then(
            (reply) => reply.text(),
          ),
        500,
      );
      await running;
      clearInterval(late);
    } else if (dice < 0.95) {
      const stream = await listenIn(session);
      await pause();
      stream.leave();
      await stream.over;
    } else {
      await endSession(session);
      session = await openSession(door, service);
    }
    await pause();
  }
  if (!end.abandon) await endSession(session);
}

/** Calls `ask`, answers what its reply asks, and reads the reply to its end. */
async function answerAsked(session: OldSession, id: number): Promise<boolean> {
  const reply = await send(session, callMessage('ask', {}, id));
  let text = '';
  let answered = false;
  for await (const chunk of reply.body!) {
    text += Buffer.from(chunk as Uint8Array).toString();
    const asked = answered ? null : /^data: (\{.*"elicitation\/create".*\})$/m.exec(text);
    if (!asked) continue;
    answered = true;
    const { id: question } = JSON.parse(asked[1]!) as Said;
    await (await send(session, { jsonrpc: '2.0', id: question, result: ANSWER })).text();
  }
  return text.includes('"done"');
}

function heapAfterGc(): number {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}
