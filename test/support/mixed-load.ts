import { expect } from 'vitest';
import { adHoc } from './ad-hoc.ts';
import { agentBlock } from './a2a-agent/index.ts';
import { CLUSTER_TOML, until } from './cluster.ts';
import { startMcpFixture } from './mcp-fixture.ts';
import { startProvider } from './provider.ts';
import { ask, events, startSpine, UNHURRIED, type Spine } from './spine.ts';
import type { Defer } from './standby.ts';
import { createTalk } from '../a2a/contract/client-calls.ts';
import { TERMINAL } from '../a2a/contract/shapes.ts';
import { callOf } from '../a2a/faults/support/money-of-calls.ts';
import { startQuickAgent, type QuickAgent } from '../a2a/faults/support/quick-agent.ts';
import { modernPost, toolToml } from '../mcp/calls/modern-post.ts';

/** What an agent's task and a tool's call cost, in micro-USD. */
const PRICE = 1_000;
const CREDIT_USD = '0.01';
/** Between two calls of a client, and after a call that was refused. */
const [PAUSE_MS, REFUSED_MS] = [10, 50];
/** As long as an end of a call is tried again, and then some. */
const SETTLED_MS_MAX = 60_000;

/** Gateways of one database in this process, with a model, a tool and an agent. */
export interface MixedGateways {
  readonly gateways: readonly Spine[];
  readonly agent: QuickAgent;
}

export async function startMixedGateways(databaseUrl: string, size: number, defer: Defer): Promise<MixedGateways> {
  const [provider, tools, agent] = await Promise.all([
    startProvider({ logMax: 0 }),
    startMcpFixture(),
    startQuickAgent(),
  ]);
  defer(async () => {
    await Promise.all([provider.stop(), tools.close(), agent.close()]);
  });
  const toml = `${UNHURRIED}
[tasks]
look_ms_max = 1000
${CLUSTER_TOML}
${toolToml({ name: 'load/tools', url: tools.url })}
${agentBlock({ name: 'load/agent', endpoint: agent.url })}`;
  const gateways: Spine[] = [];
  // The first one creates the tables.
  for (let index = 0; index < size; index += 1) {
    const gateway = await startSpine({ databaseUrl, provider, toml, credit: '1000' });
    defer(gateway.stop);
    gateways.push(gateway);
  }
  return { gateways, agent };
}

interface Acknowledged {
  readonly kind: string;
  readonly id: string;
  /** Micro-USD. */
  readonly cost: number;
}

export interface MixedLoad {
  /** Calls whose end their client saw, with what it was told of their cost. */
  readonly acknowledged: readonly Acknowledged[];
  /** The calls of tasks whose beginning their client saw, by the id of the task. */
  readonly told: ReadonlyMap<string, string>;
  /** References of credits that were answered as done. */
  readonly credits: readonly string[];
  /** Calls that were refused with 503, or whose stream ended with an error. */
  readonly refused: number;
  /** Any other failure. */
  readonly odd: readonly string[];
  /** Resolves when so many more calls have ended well. */
  more(count: number): Promise<void>;
  /** Milliseconds from now until a call that begins from now on ends well, for each gateway. */
  goesOn(): Promise<readonly number[]>;
  /** For each gateway the longest time without the end of a call since this was asked last, in milliseconds. */
  gaps(): readonly number[];
  stop(): Promise<void>;
}

/** What calls may get while there is no primary. A stream that has begun tells it in its last event. */
const AWAY = /ledger is not reachable|service_unavailable/i;

/** Clients of each gateway make calls of all kinds until `stop`, one after the other. */
export function startMixedLoad({ gateways }: MixedGateways, clientsEach: number): MixedLoad {
  const acknowledged: Acknowledged[] = [];
  const told = new Map<string, string>();
  const credits: string[] = [];
  const odd: string[] = [];
  let refused = 0;
  let isStopping = false;
  let made = 0;
  /** When the last call of each gateway that ended well began. */
  const began = gateways.map(() => 0);
  const ended = gateways.map(() => performance.now());
  const gaps = gateways.map(() => 0);
  const listeners = new Set<() => void>();

  const chat = async ({ post }: Spine, text: string) => {
    const response = await post('/chat/completions', ask(`${text} !tokens:3`));
    const body = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} ${body}`);
    return { id: response.headers.get('x-generation-id')!, usage: (JSON.parse(body) as { usage: Usage }).usage };
  };
  const stream = async ({ post }: Spine, text: string) => {
    const response = await post('/chat/completions', ask(`${text} !tokens:5 !token-ms:20`, { stream: true }));
    const body = await response.text();
    if (response.status !== 200 || !body.endsWith('data: [DONE]\n\n')) throw new Error(`${response.status} ${body}`);
    const { usage } = events(body).at(-2) as { usage: Usage };
    return { id: response.headers.get('x-generation-id')!, usage };
  };
  const microUsd = ({ cost }: Usage) => Math.round(cost * 1e6);
  const talkOf = ({ origin, key }: Spine) =>
    createTalk({ url: `${origin}/a2a/load/agent`, headers: { authorization: `Bearer ${key}` } }, '1.0', 'JSONRPC');
  const kinds: readonly (readonly [
    string,
    (spine: Spine, text: string) => Promise<Omit<Acknowledged, 'kind'> | null>,
  ])[] = [
    [
      'chat',
      async (spine, text) => {
        const { id, usage } = await chat(spine, text);
        return { id, cost: microUsd(usage) };
      },
    ],
    [
      'stream',
      async (spine, text) => {
        const { id, usage } = await stream(spine, text);
        return { id, cost: microUsd(usage) };
      },
    ],
    [
      'tool',
      async (spine) => {
        const params = { name: 'test_simple_text', arguments: {} };
        const { message, text } = await modernPost(spine, '/mcp/load/tools', 'tools/call', params);
        if (message.error) throw new Error(text);
        const { id } = callOf({ metadata: message.result['_meta'] as never });
        return { id, cost: PRICE };
      },
    ],
    [
      'task',
      async (spine) => {
        const task = await talkOf(spine).task('slow 30');
        return task.state === 'completed' ? { id: callOf(task).id, cost: PRICE } : null;
      },
    ],
    [
      'task in the background',
      async (spine) => {
        const task = await talkOf(spine).task('slow 300', { immediately: true });
        told.set(task.id, callOf(task).id);
        return null;
      },
    ],
    [
      'stream of a task',
      async (spine) => {
        const reply = await talkOf(spine).stream('slow 60');
        for (let event = await reply.next(); event; event = await reply.next())
          if (event.type === 'status' && TERMINAL.includes(event.state)) return { id: callOf(event).id, cost: PRICE };
        throw new Error(`a stream ended early: ${JSON.stringify(reply.wire.at(-1))}`);
      },
    ],
    [
      'credit',
      async ({ origin, adminKey, account }, text) => {
        const response = await fetch(`${origin}/admin/v1/accounts/${encodeURIComponent(account)}/credit`, {
          method: 'POST',
          headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
          body: JSON.stringify({ amount_usd: CREDIT_USD, reference: text }),
        });
        const body = await response.text();
        if (!response.ok) throw new Error(`${response.status} ${body}`);
        credits.push(text);
        return null;
      },
    ],
  ];

  const client = async (spine: Spine, gateway: number, index: number) => {
    for (let turn = index; !isStopping; turn += 1) {
      const [kind, call] = kinds[turn % kinds.length]!;
      const startedAt = performance.now();
      let pauseMs = PAUSE_MS;
      try {
        const end = await call(spine, `load ${made++}.`);
        if (end) acknowledged.push({ kind, ...end });
        began[gateway] = Math.max(began[gateway]!, startedAt);
        gaps[gateway] = Math.max(gaps[gateway]!, performance.now() - ended[gateway]!);
        ended[gateway] = performance.now();
        for (const listener of listeners) listener();
      } catch (error) {
        pauseMs = REFUSED_MS;
        if (AWAY.test(String(error))) refused += 1;
        else odd.push(`${kind}: ${String(error)} ${String((error as Error).cause ?? '')}`);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
  const clients = gateways.flatMap((spine, gateway) =>
    Array.from({ length: clientsEach }, (_, index) => client(spine, gateway, index)),
  );
  /** Resolves when `isSo` holds after a call. */
  const when = (isSo: () => boolean) =>
    new Promise<void>((resolve) => {
      const listener = () => {
        if (!isSo()) return;
        listeners.delete(listener);
        resolve();
      };
      listeners.add(listener);
    });

  return {
    acknowledged,
    told,
    credits,
    odd,
    get refused() {
      return refused;
    },
    async more(count) {
      const before = acknowledged.length;
      await when(() => acknowledged.length >= before + count);
    },
    goesOn() {
      const now = performance.now();
      return Promise.all(
        gateways.map(async (_, gateway) => {
          await when(() => began[gateway]! > now);
          return performance.now() - now;
        }),
      );
    },
    gaps: () => gaps.map((ms, gateway) => ((gaps[gateway] = 0), ms)),
    async stop() {
      isStopping = true;
      await Promise.all(clients);
    },
  };
}

interface Usage {
  readonly cost: number;
}

const OPEN = adHoc(`SELECT (SELECT count(*) FROM tasks WHERE ended_at IS NULL) AS live,
  (SELECT count(*) FROM locks WHERE state = 'held') AS held`);
const LOCKS = adHoc('SELECT id, state, charged FROM locks');
const CALLS = adHoc('SELECT task_id, call_id FROM task_calls');
const CREDITS = adHoc(
  "SELECT id, memo, amount FROM transfers WHERE to_account = $1 AND from_account = 'treasury:operator'",
);

/**
 * Compares the books with what the clients were told, after `stop`: each acknowledged call is settled once, at its
 * cost, each task that completed is paid, each credit is there once, and nothing is held any more.
 */
export async function expectSettledOnce({ gateways, agent }: MixedGateways, load: MixedLoad): Promise<void> {
  const { app, account } = gateways[0]!;
  const { query } = app.database;
  const rest = async () => (await query(OPEN))[0];
  await until(
    async () => {
      const row = await rest();
      return row!['live'] === 0n && row!['held'] === 0n;
    },
    `every lock is resolved: ${JSON.stringify(await rest(), (_, value: unknown) => String(value))}`,
    SETTLED_MS_MAX,
  );
  const locks = new Map((await query(LOCKS)).map((row) => [row['id'], row]));
  const wrong: unknown[] = [];
  for (const call of load.acknowledged) {
    const lock = locks.get(call.id);
    if (lock?.['state'] !== 'settled' || Number(lock['charged']) !== call.cost)
      wrong.push({ ...call, state: lock?.['state'], charged: String(lock?.['charged']) });
  }
  const calls = new Map((await query(CALLS)).map((row) => [row['task_id'], row['call_id']]));
  for (const [task, call] of load.told) {
    const lock = locks.get(call);
    const due = agent.tasks.get(task)?.state === 'completed' ? PRICE : 0;
    if (calls.get(task) !== call || lock?.['state'] !== 'settled' || Number(lock['charged']) !== due)
      wrong.push({ task, call, due, state: lock?.['state'], charged: String(lock?.['charged']) });
  }
  expect(wrong.slice(0, 5)).toEqual([]);
  expect(new Set(load.acknowledged.map(({ id }) => id)).size).toBe(load.acknowledged.length);
  const credits = await query(CREDITS, [`escrow:${account}`]);
  const references = credits.map(({ id, memo }) => `${String(id)} ${String(memo)}`);
  for (const reference of load.credits)
    expect(references.filter((text) => text.includes(reference)).length, reference).toBe(1);
  const credited = credits.reduce((sum, { amount }) => sum + (amount as bigint), 0n);
  const charged = [...locks.values()].reduce((sum, row) => sum + (row['charged'] as bigint), 0n);
  expect(await gateways[0]!.balance()).toEqual({ available: credited - charged, locked: 0n });
  expect((await gateways[0]!.audit()).checks.filter(({ ok }) => !ok)).toEqual([]);
}

/** `p50 120 ms, p99 450 ms, longest 460 ms` */
export function quantiles(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.ceil(sorted.length * share) - 1]!);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
}
