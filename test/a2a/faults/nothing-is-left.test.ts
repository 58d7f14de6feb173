import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { dialIn } from '../../support/dial-in.ts';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { until as untilWithin } from '../../support/tunnel-spine.ts';
import { createTalk } from '../contract/client-calls.ts';
import { inTurn } from './support/money-of-calls.ts';
import { startQuickAgent } from './support/quick-agent.ts';

// Many short tasks, and streams whose clients went away: afterwards nothing is left of them but
// what they cost.

/** A busy machine takes long to settle hundreds of tasks. */
const until = (condition: () => boolean | Promise<boolean>) => untilWithin(condition, 120_000);

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PHASES = DEEP ? 10 : 2;
/** Of each phase. */
const SHORT = DEEP ? 1_000 : 96;
const LEFT = DEEP ? 250 : 30;
const AT_ONCE = 24;
const PRICE = 1_000n;
/** What may be kept of one phase to the last: caches that fill up, and noise. */
const GROWTH_BYTES_MAX = 8 * 1024 * 1024;
/** Both ends of the tunnel, and of the connections that this process keeps to the gateway and to its own agent. */
const SOCKETS_MAX = 8;
/** Of what is done now and then. An HTTP client looks after a connection for some seconds after its end. */
const TIMERS_MAX = 8;
const RETENTION_MS = 3_600_000;
/** After this time the gateway looks after the calls of ended tasks that were left to their own runs. */
const OWN_RUN_MS = 150_000;

const HELD_ROWS = ['tasks', 'task_calls', 'idempotency'].map((table) => ({
  name: `test/rows-of-${table}`,
  text: `SELECT count(*) AS rows FROM ${table}`,
}));
const OPEN = { name: 'test/open-tasks', text: 'SELECT count(*) AS rows FROM tasks WHERE open = 1' };

test(
  `${PHASES * SHORT} short tasks and ${PHASES * LEFT} streams that were left: sockets, timers, memory and rows go back`,
  { timeout: 3_600_000 },
  async () => {
    const clock = { ahead: 0 };
    const agent = await startQuickAgent();
    onTestFinished(() => agent.close());
    const spine = await startSpine({
      now: () => Date.now() + clock.ahead,
      credit: '1000',
      toml: `${UNHURRIED}listens_max = 1000\n[billing]\nsweep_ms = 500\n[tasks]\nlook_ms_max = 1000\nretention_ms = ${RETENTION_MS}\n${agentBlock({ name: 'direct/agent', endpoint: agent.url, provider: 'Direct' })}`,
    });
    onTestFinished(() => spine.stop());
    const proxy = await dialIn({
      router: spine.origin,
      services: agentBlock({ name: 'tunnel/agent', endpoint: agent.url, provider: 'Tunnel' }),
    });
    onTestFinished(() => proxy.kill());
    const talks = ['direct/agent', 'tunnel/agent'].map((service) =>
      createTalk(
        { url: `${spine.origin}/a2a/${service}`, headers: { authorization: `Bearer ${spine.key}` } },
        '1.0',
        'JSONRPC',
      ),
    );
    const counted = (count: number) => Array.from({ length: count }, (_, index) => index);

    const phase = async () => {
      await inTurn(counted(SHORT), AT_ONCE, async (index) => {
        const talk = talks[index % 2]!;
        if (index % 4 < 2) return void (await talk.task('done'));
        if (index % 8 < 4) return void (await (await talk.stream('slow 5')).rest());
        await talk.task('slow 1', { immediately: true });
      });
      const left = await inTurn(counted(LEFT), AT_ONCE, async (index) => {
        const talk = talks[index % 2]!;
        const stream = await talk.stream('work');
        const { id } = (await stream.next()) as { id: string };
        if (index % 5 === 0) {
          const listening = await talk.subscribe(id);
          await listening.next();
          listening.leave();
        }
        stream.leave();
        return id;
      });
      // Their calls still listen.
      expect(agent.streams).toBeGreaterThanOrEqual(LEFT);
      for (const id of left) agent.end(id, 'completed');
      await spine.quiet();
      await until(
        async () => agent.streams === 0 && /^tollgate_calls_in_flight 0$/m.test(await spine.app.metrics.text()),
      );
      spine.logs.length = proxy.lines.length = 0;
      agent.forget();
    };

    const before = (await spine.balance()).available;
    // The tunnel, and what is open for nobody's call.
    await talks[0]!.task('done');
    const idle = async () => {
      await until(() => {
        agent.closeIdle();
        spine.app.server.server.closeIdleConnections();
        return open('TCPSocketWrap') <= SOCKETS_MAX && open('Timeout') <= TIMERS_MAX;
      });
      return { sockets: open('TCPSocketWrap'), timers: open('Timeout') };
    };
    const baseline = await idle();
    const heaps: number[] = [];
    for (let done = 0; done < PHASES; done += 1) {
      await phase();
      heaps.push(heapAfterGc());
    }
    expect(before - (await spine.balance()).available).toBe(BigInt(PHASES * (SHORT + LEFT) + 1) * PRICE);
    const afterwards = await idle();
    console.log(
      `  heap ${heaps.map((bytes) => (bytes / 1024 / 1024).toFixed(1)).join(', ')} MiB after the phases; before and after: ${baseline.sockets}, ${afterwards.sockets} sockets, ${baseline.timers}, ${afterwards.timers} timers`,
    );
    expect(heaps.at(-1)! - heaps[0]!).toBeLessThan(GROWTH_BYTES_MAX);

    // Ended tasks are remembered for as long as they may be asked for, and no longer.
    const rows = async () =>
      Promise.all(HELD_ROWS.map(async (count) => Number((await spine.app.database.query(count))[0]!['rows'])));
    expect((await rows())[0]).toBe(PHASES * (SHORT + LEFT) + 1);
    clock.ahead += OWN_RUN_MS;
    await until(async () => Number((await spine.app.database.query(OPEN))[0]!['rows']) === 0);
    clock.ahead += RETENTION_MS + 60_000;
    await until(async () => (await rows()).slice(0, 2).every((count) => count === 0));
    clock.ahead += 86_400_000;
    await until(async () => (await rows()).every((count) => count === 0));
    expect(await spine.faults()).toEqual([]);
  },
);

const open = (kind: string) => process.getActiveResourcesInfo().filter((name) => name === kind).length;

function heapAfterGc(): number {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}
