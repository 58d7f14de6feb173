import { expect, onTestFinished, test } from 'vitest';
import { callTool, toolToml } from '../../mcp/calls/modern-post.ts';
import { statusEvent, taskResult, writeEvent } from '../../a2a/calls/support/raw-served.ts';
import { createTalk } from '../../a2a/contract/client-calls.ts';
import { agentBlock, startCardedAgent, type RawExchange } from '../../support/a2a-agent/index.ts';
import { startRawMcp, type Asked, type RawAnswer } from '../../support/raw-mcp.ts';
import type { Spine } from '../../support/spine.ts';
import { startTunnelSpine } from '../../support/tunnel-spine.ts';

/*
 * How calls of tools and agents end, at the operator's own and at those that dial in, and who pays what then. What they
 * report counts where they are priced by their use, here 10 USD for a million tokens and 0.001 USD for a call.
 */

const REPLY_BYTES_MAX = 64 * 1024;
const CALL = 1_000n;
/** 1,000 tokens and a call. */
const USED = 11_000n;
const METERED = 'per_call = 0.001\ncompletion = 10\nper_call_max = 0.05';
const FLAT = 'per_call = 0.001';
const LIMITS = `[upstream]\ncooldown_ms = 0\nidle_timeout_ms = 3000\nreply_bytes_max = ${REPLY_BYTES_MAX}\nimages_reply_bytes_max = ${REPLY_BYTES_MAX}\n[billing]\ndrain_ms = 700\n`;
const REPORT = { 'tollgate/usage': { completion: 1_000 } };
/** Explains a report of 1,000 tokens. */
const LONG = 'word '.repeat(1_600);

const SIDES = ['own', 'far'] as const;
const PRICINGS = { flat: FLAT, metered: METERED } as const;
type Pricing = keyof typeof PRICINGS;
/** What a call costs at a flat price, and priced by use: the same at both sides, or at the own and at the far one. */
type Costs = readonly [flat: bigint, metered: bigint | readonly [own: bigint, far: bigint]];
const costAt = ([flat, metered]: Costs, pricing: Pricing, side: (typeof SIDES)[number]): bigint =>
  pricing === 'flat' ? flat : typeof metered === 'bigint' ? metered : metered[side === 'own' ? 0 : 1];

/** What the account pays while this runs. */
async function spent(spine: Spine, run: () => Promise<unknown>): Promise<bigint> {
  const before = (await spine.balance()).available;
  await run();
  await spine.quiet();
  return before - (await spine.balance()).available;
}

/** The error and the status in the records of the calls of a service, by primitive and finish reason. */
async function errorsAt(spine: Spine, service: string): Promise<Readonly<Record<string, unknown>>> {
  const { data } = (await (await spine.get(`/generations?service=${service}&limit=100`)).json()) as {
    data: readonly Readonly<Record<string, unknown>>[];
  };
  return Object.fromEntries(
    data.map((one) => [
      `${String(one['primitive'])} ${String(one['finish_reason'])}`,
      [one['error_code'], one['status']],
    ]),
  );
}

const result = (more: object) => JSON.stringify({ resultType: 'complete', content: [], ...more });
const inOnePiece =
  (text: string): RawAnswer =>
  (response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(text);
const PROGRESS = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 'p', progress: 1 },
};

interface ToolRow {
  readonly answer: (asked: Asked) => RawAnswer;
  readonly leaves?: 'at once' | 'after progress';
  readonly costs: Costs;
}

const begun: RawAnswer = (response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(PROGRESS)}\n\n`);
const never: RawAnswer = () => {};

const TOOLS: Readonly<Record<string, ToolRow>> = {
  complete: { answer: () => result({ content: [{ type: 'text', text: LONG }], _meta: REPORT }), costs: [CALL, USED] },
  unreported: { answer: () => result({}), costs: [CALL, 0n] },
  iserror: { answer: () => result({ isError: true }), costs: [0n, 0n] },
  iserrorreported: {
    answer: () => result({ isError: true, content: [{ type: 'text', text: LONG }], _meta: REPORT }),
    costs: [0n, 0n],
  },
  refused: {
    answer: ({ idText }) => inOnePiece(`{"jsonrpc":"2.0","id":${idText},"error":{"code":-32602,"message":"no"}}`),
    costs: [0n, 0n],
  },
  left: { answer: () => never, leaves: 'at once', costs: [0n, 0n] },
  leftinprogress: { answer: () => begun, leaves: 'after progress', costs: [0n, 0n] },
  silent: { answer: () => begun, costs: [0n, 0n] },
  malformed: { answer: () => inOnePiece('no json'), costs: [0n, 0n] },
  lost: {
    answer: () => (response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {', () => response.destroy()),
    costs: [0n, 0n],
  },
};

test('every row of tools, own and dialled in, at both kinds of price', async () => {
  const asked = new Map<string, PromiseWithResolvers<void>>();
  const at = (id: string) => asked.get(id) ?? asked.set(id, Promise.withResolvers<void>()).get(id)!;
  const server = await startRawMcp((one) => {
    at((one.params['arguments'] as { id: string }).id).resolve();
    const name = String(one.params['name']);
    if (name === 'toolarge') return result({ content: [{ type: 'text', text: 'x'.repeat(2 * REPLY_BYTES_MAX) }] });
    return TOOLS[name]!.answer(one);
  });
  onTestFinished(() => server.close());
  const block = (side: string) =>
    Object.entries(PRICINGS)
      .map(([name, pricing]) => toolToml({ name: `${side}/${name}`, url: server.url, pricing, provider: side }))
      .join('');
  const { spine, dialIn } = await startTunnelSpine(LIMITS + block('own'));
  await dialIn({ services: block('far') });
  const wrong: string[] = [];
  for (const side of SIDES)
    for (const pricing of Object.keys(PRICINGS) as Pricing[]) {
      const call = async (name: string, leaves?: ToolRow['leaves']) => {
        const leaving = new AbortController();
        const id = `${side}-${pricing}-${name}`;
        const options = { signal: leaving.signal, meta: { progressToken: 'p' } };
        const calling = callTool(spine, `${side}/${pricing}`, name, { id }, options).catch(() => {});
        if (leaves === undefined) return void (await calling);
        await at(id).promise;
        leaving.abort();
        await calling;
      };
      for (const [name, { leaves, costs }] of Object.entries(TOOLS)) {
        const cost = await spent(spine, () => call(name, leaves));
        if (cost !== costAt(costs, pricing, side)) wrong.push(`${name} ${side} ${pricing} costs ${cost}`);
      }
      // It has run, so its call is charged, and the bytes that came of it.
      const large = await spent(spine, () => call('toolarge'));
      if (pricing === 'flat' ? large !== CALL : large <= CALL) wrong.push(`toolarge ${side} ${pricing} costs ${large}`);
    }
  expect(wrong).toEqual([]);
  expect(await errorsAt(spine, 'own/flat')).toMatchObject({
    'tool complete': [null, 200],
    'tool isError': ['tool_error', 200],
    'tool error -32602': ['-32602', 200],
  });
  expect(await spine.faults()).toEqual([]);
}, 120_000);

interface AgentRow {
  /** Answers the message. */
  readonly answer: (exchange: RawExchange, id: string) => void;
  /** The canceled task; absent if its client does not cancel it. */
  readonly canceled?: object;
  /** The client asks for a stream, and waits for this before it cancels. */
  readonly until?: string;
  readonly costs: Costs;
}

const artifacts = [{ artifactId: 'a', parts: [{ text: LONG }] }];
const ended =
  (state: string, more: object = {}) =>
  (exchange: RawExchange, id: string) =>
    exchange.result(taskResult(id, state, more));
const working = (exchange: RawExchange, id: string) => writeEvent(exchange, taskResult(id, 'WORKING'));
const given = (exchange: RawExchange, id: string) => {
  working(exchange, id);
  writeEvent(exchange, { artifactUpdate: { taskId: id, contextId: `context-of-${id}`, artifact: artifacts[0]! } });
};
const asks = (exchange: RawExchange, id: string) => {
  const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'which one?' }] };
  const status = { state: 'TASK_STATE_INPUT_REQUIRED', message };
  writeEvent(exchange, taskResult(id, 'WORKING'));
  writeEvent(exchange, { statusUpdate: { taskId: id, contextId: `context-of-${id}`, status } });
  exchange.response.end();
};
const REPORTED = { metadata: { ...REPORT, notes: LONG } };

const AGENTS: Readonly<Record<string, AgentRow>> = {
  complete: { answer: ended('COMPLETED', { artifacts, metadata: REPORT }), costs: [CALL, USED] },
  unreported: { answer: ended('COMPLETED', { artifacts }), costs: [CALL, 0n] },
  failed: { answer: ended('FAILED', { artifacts, metadata: REPORT }), costs: [0n, 0n] },
  rejected: { answer: ended('REJECTED', REPORTED), costs: [0n, 0n] },
  failedmidway: {
    answer(exchange, id) {
      given(exchange, id);
      writeEvent(exchange, statusEvent(id, 'FAILED', REPORTED));
      exchange.response.end();
    },
    until: 'artifactId',
    costs: [0n, 0n],
  },
  canceled: { answer: working, canceled: {}, until: 'WORKING', costs: [0n, 0n] },
  canceledreported: { answer: working, canceled: REPORTED, until: 'WORKING', costs: [0n, [USED, 0n]] },
  canceledmidway: { answer: given, canceled: {}, until: 'artifactId', costs: [CALL, CALL] },
  canceledmidwayreported: { answer: given, canceled: REPORTED, until: 'artifactId', costs: [CALL, USED] },
  askedthencanceled: { answer: asks, canceled: {}, until: 'which one', costs: [CALL, CALL] },
  askedthencanceledreported: { answer: asks, canceled: REPORTED, until: 'which one', costs: [CALL, USED] },
  malformed: { answer: ({ response }) => void response.writeHead(200).end('no json'), costs: [0n, 0n] },
  lost: { answer: ({ response }) => void response.destroy(), costs: [0n, 0n] },
};

test('every row of agents, own and dialled in, at both kinds of price', async () => {
  const agent = await startCardedAgent(
    (exchange) => {
      const { params, method } = exchange.request as { params: Record<string, unknown>; method: string | null };
      if (method === 'CancelTask') {
        const id = String(params['id']);
        return exchange.result(taskResult(id, 'CANCELED', AGENTS[id.split('-').at(-1)!]!.canceled).task);
      }
      if (method !== 'SendMessage' && method !== 'SendStreamingMessage')
        return exchange.result(taskResult(String(params['id']), 'WORKING').task);
      const id = (params['message'] as { parts: readonly { text: string }[] }).parts[0]!.text;
      return AGENTS[id.split('-').at(-1)!]!.answer(exchange, id);
    },
    { streaming: true },
  );
  onTestFinished(() => agent.close());
  const block = (side: string) =>
    Object.entries(PRICINGS)
      .map(([name, pricing]) => agentBlock({ name: `${side}/${name}`, endpoint: agent.url, pricing, provider: side }))
      .join('');
  const { spine, dialIn } = await startTunnelSpine(LIMITS + block('own'));
  await dialIn({ services: block('far') });
  const wrong: string[] = [];
  for (const side of SIDES)
    for (const pricing of Object.keys(PRICINGS) as Pricing[]) {
      const url = `${spine.origin}/a2a/${side}/${pricing}`;
      const talk = createTalk({ url, headers: { authorization: `Bearer ${spine.key}` } }, '1.0', 'JSONRPC');
      for (const [name, { canceled, until, costs }] of Object.entries(AGENTS)) {
        const id = `${side}-${pricing}-${name}`;
        const cost = await spent(spine, async () => {
          if (until === undefined) return talk.sent(id);
          const stream = await talk.stream(id);
          for (let heard = ''; !heard.includes(until);) heard += JSON.stringify(await stream.next());
          if (canceled === undefined) return stream.rest();
          await talk.call('CancelTask', { id });
          return stream.leave();
        });
        if (cost !== costAt(costs, pricing, side)) wrong.push(`${name} ${side} ${pricing} costs ${cost}`);
      }
    }
  expect(wrong).toEqual([]);
  expect(await errorsAt(spine, 'own/flat')).toMatchObject({
    'agent completed': [null, 200],
    'agent failed': ['task_failed', 200],
    'agent rejected': ['task_rejected', 200],
  });
  expect(await spine.faults()).toEqual([]);
}, 120_000);
