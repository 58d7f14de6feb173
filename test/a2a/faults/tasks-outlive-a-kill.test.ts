import { expect, onTestFinished, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { startAgentProcess, type AgentProcess } from '../../support/a2a-agent/agent-process.ts';
import { dialIn, READY } from '../../support/dial-in.ts';
import { startGateway } from '../../support/gateway.ts';
import { until } from '../../support/tunnel-spine.ts';
import { DOMAIN } from '../../support/wallets.ts';
import { createTalk } from '../contract/client-calls.ts';
import { booksOf, callOf, inTurn } from './support/money-of-calls.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

// The gateway's process is killed while agents work for its clients, and starts again on its embedded database.
// Half of the agents are behind a tunnel that dials in again. Agents end their tasks before, meanwhile and
// afterwards; each is settled once, by what its agent says of it.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const TASKS = DEEP ? 1_000 : 80;
/** The everyday suite does not wait for long pauses between looks. */
const LOOKS = DEEP ? '' : '[tasks]\nlook_ms_max = 2000\n';
const SLOW_MS_MAX = 4_000;
const PRICE = 1_000;
/** From its first answer after the start until all that has ended is settled. */
const SETTLED_MS_MAX = 15_000;
const AT_ONCE = 32;

/** What becomes of a task, and when. */
const FATES = [
  { text: 'wait', meanwhile: 'completed' },
  { text: 'wait', afterwards: 'completed' },
  { text: 'wait', meanwhile: 'failed' },
  { text: 'wait', afterwards: 'rejected' },
  { text: 'wait', meanwhile: 'canceled' },
  // By its client, through the gateway.
  { text: 'wait', canceled: true },
  { text: 'ask', answered: true },
  { text: 'ask' },
  { text: 'wait' },
  // Ends by itself, at a moment that nobody chose.
  { text: 'slow' },
] as const satisfies readonly Fate[];

interface Fate {
  readonly text: string;
  readonly meanwhile?: Parameters<AgentProcess['finish']>[1];
  readonly afterwards?: Parameters<AgentProcess['finish']>[1];
  readonly canceled?: boolean;
  readonly answered?: boolean;
}

interface Begun {
  readonly id: string;
  readonly contextId: string;
  readonly fate: Fate;
  readonly service: string;
  /** Its first call, and the one that answered what it asked. */
  readonly calls: string[];
}

test(`${TASKS} tasks alive at a kill -9: all that end are settled once and exactly, the others keep their locks`, async () => {
  const agent = await startAgentProcess();
  onTestFinished(() => agent.stop());
  const gateway = await startGateway({
    env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN },
    toml: `[limits]\nrequests_per_minute = 1000000\nburst = 1000000\n${LOOKS}${agentBlock({ name: 'direct/agent', endpoint: agent.url, provider: 'Direct' })}`,
  });
  onTestFinished(() => gateway.stop());
  const owner = await gateway.openAccount('caller', 10);
  const books = booksOf(gateway, owner);
  const proxy = await dialIn({
    router: gateway.baseUrl,
    services: agentBlock({ name: 'tunnel/agent', endpoint: agent.url, provider: 'Tunnel' }),
  });
  onTestFinished(() => proxy.kill());
  const talks = new Map(
    ['direct/agent', 'tunnel/agent'].map((service) => {
      const place = { url: `${gateway.baseUrl}/a2a/${service}`, headers: { authorization: `Bearer ${owner.key}` } };
      return [service, createTalk(place, '1.0', 'JSONRPC')] as const;
    }),
  );
  const talkOf = ({ service }: Pick<Begun, 'service'>) => talks.get(service)!;

  const begun = await inTurn(
    Array.from({ length: TASKS }, (_, index) => index),
    AT_ONCE,
    async (index): Promise<Begun> => {
      const service = index % 2 === 0 ? 'direct/agent' : 'tunnel/agent';
      const fate = FATES[(index >> 1) % FATES.length]!;
      const text = fate.text === 'slow' ? `slow ${(index * 37) % SLOW_MS_MAX}` : fate.text;
      const { id, contextId, metadata } = await talkOf({ service }).task(text, { immediately: true });
      return { id, contextId, fate, service, calls: [callOf({ metadata }).id] };
    },
  );
  await gateway.kill9();
  const finish = (when: 'meanwhile' | 'afterwards') =>
    inTurn(
      begun.filter(({ fate }) => fate[when] !== undefined),
      AT_ONCE,
      ({ id, fate }) => agent.finish(id, fate[when]),
    );
  await finish('meanwhile');
  await gateway.restart();
  const readyAt = performance.now();
  await proxy.logged(READY, 2);
  const ofFate = (fits: (fate: Fate) => boolean | undefined) => begun.filter(({ fate }) => fits(fate) === true);
  await Promise.all([
    finish('afterwards'),
    inTurn(
      ofFate(({ canceled }) => canceled),
      AT_ONCE,
      async (task) => {
        expect((await talkOf(task).call('CancelTask', { id: task.id })).error).toBeNull();
      },
    ),
    inTurn(
      ofFate(({ answered }) => answered),
      AT_ONCE,
      async (task) => {
        const { id, contextId } = task;
        const { state, metadata } = await talkOf(task).task('this one', { message: { taskId: id, contextId } });
        expect(state).toBe('completed');
        task.calls.push(callOf({ metadata }).id);
      },
    ),
  ]);

  // What the agent says now is what it did, whoever asks.
  const said = createTalk({ url: agent.url, headers: {} }, '1.0', 'JSONRPC');
  const slow = ofFate(({ text }) => text === 'slow');
  await until(async () =>
    (await inTurn(slow, AT_ONCE, ({ id }) => said.get(id))).every(({ state }) => state === 'completed'),
  );
  const states = new Map((await inTurn(begun, AT_ONCE, ({ id }) => said.get(id))).map(({ id, state }) => [id, state]));
  const alive = begun.filter(({ id }) => !ENDS.has(states.get(id)!));
  expect(alive).toHaveLength((TASKS / FATES.length) * 2);
  await until(async () => (await books.account()).locked === alive.length * PRICE, 60_000);
  const settledMs = Math.round(performance.now() - readyAt);
  console.log(
    `  ${TASKS} tasks, ${alive.length} of them still alive; all others settled ${settledMs} ms after the start`,
  );
  expect(settledMs).toBeLessThan(atThisLoad(SETTLED_MS_MAX));

  const wrong: unknown[] = [];
  let due = 0;
  await inTurn(begun, AT_ONCE, async (task) => {
    const { id, calls, fate } = task;
    const state = states.get(id)!;
    const money = await books.calls(calls);
    const charged = state === 'completed' ? PRICE : 0;
    due += charged * calls.length;
    if (money.some((one) => one.charged !== charged || one.state !== (ENDS.has(state) ? 'settled' : 'held')))
      wrong.push({ fate, state, money });
  });
  expect(wrong).toEqual([]);
  expect(await books.account()).toEqual({
    locked: alive.length * PRICE,
    balance: 10_000_000 - due - alive.length * PRICE,
  });
  expect(await books.faults()).toEqual([]);
});

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'canceled', 'rejected']);
