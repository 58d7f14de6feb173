import { expect, onTestFinished, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { dialIn } from '../../support/dial-in.ts';
import { startGateway } from '../../support/gateway.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { until } from '../../support/tunnel-spine.ts';
import { DOMAIN } from '../../support/wallets.ts';
import { createTalk, type Stream } from '../contract/client-calls.ts';
import { booksOf } from './support/money-of-calls.ts';
import { startQuickAgent } from './support/quick-agent.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

// SIGTERM while agents work and clients listen: what ends within the drain limit is told and paid as ever, the rest
// goes on without the gateway.

/** Processes are started, on a machine that may be busy. */
const SLOW = { timeout: 90_000 };
const PRICE = 1_000;
/** What a stopping gateway may write is of this level at most. */
const COMPLAINT = /unhandled|"level":"(?:error|fatal)"/i;

/** The gateway is a process where its end by a signal is tested, and in this one where only its closing is. */
async function startWorld(start: typeof startGatewayHere, drainMs: number) {
  const agent = await startQuickAgent();
  onTestFinished(() => agent.close());
  const gateway = await start({
    env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN },
    toml: `[limits]\ndrain_on_shutdown_ms = ${drainMs}\n[tasks]\nlook_ms_max = 1000\n${agentBlock({ name: 'direct/agent', endpoint: agent.url, provider: 'Direct' })}`,
  });
  onTestFinished(() => gateway.stop());
  const owner = await gateway.openAccount('caller', 10);
  const proxy = await dialIn({
    router: gateway.baseUrl,
    services: agentBlock({ name: 'tunnel/agent', endpoint: agent.url, provider: 'Tunnel' }),
  });
  onTestFinished(() => proxy.kill());
  const talks = ['direct/agent', 'tunnel/agent'].map((service) =>
    createTalk(
      { url: `${gateway.baseUrl}/a2a/${service}`, headers: { authorization: `Bearer ${owner.key}` } },
      '1.0',
      'JSONRPC',
    ),
  );
  return { agent, gateway, proxy, talks, books: booksOf(gateway, owner) };
}

/** The id of the task that a stream begins with. */
const taskOf = async (stream: Stream) => ((await stream.next()) as { id: string }).id;
/** How a stream ended. */
const endOf = (stream: Stream) =>
  stream.rest().then(
    (events) => ({ clean: true, last: events.at(-1) }),
    (error: unknown) => ({ clean: false, error: String(error) }),
  );

test(
  'tasks that end within the drain limit are told and paid; a new call is refused meanwhile, and nothing is left',
  SLOW,
  async () => {
    const { agent, gateway, talks, books } = await startWorld(startGateway, 20_000);
    const streams = await Promise.all(talks.map((talk) => talk.stream('work')));
    const ids = await Promise.all(streams.map(taskOf));
    const listening = await talks[0]!.subscribe(ids[0]!);
    await listening.next();
    const begun = performance.now();
    const exit = gateway.term();
    // With what is free: a message that comes before the signal is answered, and paid.
    await until(async () =>
      /shutting down/.test((await talks[0]!.call('GetTask', { id: ids[0]! })).error?.message ?? ''),
    );
    for (const id of ids) agent.end(id, 'completed');
    for (const stream of [...streams, listening])
      expect(await endOf(stream)).toMatchObject({ clean: true, last: { type: 'status', state: 'completed' } });
    expect(await exit).toBe(0);
    expect(performance.now() - begun).toBeLessThan(atThisLoad(10_000));
    expect(gateway.logs()).not.toMatch(COMPLAINT);
    await gateway.restart();
    expect(await books.account()).toEqual({ locked: 0, balance: 10_000_000 - 2 * PRICE });
    expect(await books.faults()).toEqual([]);
  },
);

test(
  'tasks that go on past the limit: their streams end, they do not, and are settled after the restart',
  SLOW,
  async () => {
    const drainMs = 1_500;
    const { agent, gateway, proxy, talks, books } = await startWorld(startGatewayHere, drainMs);
    const streams = (
      await Promise.all(talks.map((talk) => Promise.all([talk.stream('work'), talk.stream('work')])))
    ).flat();
    const ids = await Promise.all(streams.map(taskOf));
    const listeners = await Promise.all(talks.map((talk, index) => talk.subscribe(ids[index * 2]!)));
    await Promise.all(listeners.map((listener) => listener.next()));
    const held = await Promise.all(talks.map((talk) => talk.task('ask', { immediately: true })));
    const begun = performance.now();
    const exit = gateway.term();
    const ends = await Promise.all([...streams, ...listeners].map(endOf));
    expect(await exit).toBe(0);
    const tookMs = performance.now() - begun;
    expect(tookMs).toBeLessThan(atThisLoad(drainMs + 3_000));
    expect(gateway.logs()).not.toMatch(COMPLAINT);
    console.log(
      `  stopped after ${Math.round(tookMs)} ms; streams ended cleanly: ${ends.filter(({ clean }) => clean).length} of ${ends.length}`,
    );
    expect(ends.map(({ clean }) => clean)).toEqual(ends.map(() => true));

    agent.end(ids[0]!, 'completed');
    agent.end(ids[1]!, 'failed');
    await gateway.restart();
    await proxy.logged('ready: calls can come', 2);
    agent.end(ids[2]!, 'completed');
    const listening = await talks[1]!.subscribe(ids[3]!);
    await listening.next();
    agent.end(ids[3]!, 'completed');
    expect((await listening.rest()).at(-1)).toMatchObject({ type: 'status', state: 'completed' });
    await until(async () => (await books.account()).locked === held.length * PRICE);
    expect(await books.account()).toEqual({
      locked: held.length * PRICE,
      balance: 10_000_000 - (3 + held.length) * PRICE,
    });
    for (const [index, { id, contextId }] of held.entries())
      expect((await talks[index]!.task('this', { message: { taskId: id, contextId } })).state).toBe('completed');
    expect(await books.account()).toEqual({ locked: 0, balance: 10_000_000 - (3 + 2 * held.length) * PRICE });
    expect(await books.faults()).toEqual([]);
  },
);
