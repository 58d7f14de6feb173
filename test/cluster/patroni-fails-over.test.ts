import { expect, onTestFinished, test } from 'vitest';
import { expectSettledOnce, quantiles, startMixedGateways, startMixedLoad } from '../support/mixed-load.ts';
import { findPatroni, startPatroni } from '../support/patroni.ts';
import type { Defer } from '../support/standby.ts';

const KILLS = Number(process.env['TOLLGATE_PATRONI_KILLS'] ?? 10);
const SWITCHOVERS = 3;
const CALLS = 100;
/** `ttl`, `loop_wait`, `retry_timeout`: the shortest that Patroni takes with this `loop_wait`. */
const TIMING = [20, 5, 5] as const;

test(
  `${KILLS} kills of the primary of a Patroni cluster and ${SWITCHOVERS} switchovers, under calls of all kinds: what was acknowledged is settled once`,
  { timeout: 3_600_000 },
  async () => {
    const programs = findPatroni();
    if (typeof programs === 'string') return console.log(`  nothing was tested: ${programs}`);
    const defer: Defer = onTestFinished;
    const cluster = await startPatroni(programs, { size: 3, timing: TIMING, defer });
    const world = await startMixedGateways(cluster.url, 3, defer);
    const load = startMixedLoad(world, 7);
    const told = (what: string, ms: readonly number[], refused: number) =>
      console.log(`  ${what}: ${quantiles(ms)} until calls go on; ${refused} calls refused`);
    const killed: number[] = [];
    for (let round = 0; round < KILLS; round += 1) {
      await load.more(CALLS);
      const leader = await cluster.leader();
      cluster.kill9(leader);
      killed.push(...(await load.goesOn()));
      cluster.restart(leader);
      await cluster.whole();
    }
    told(`${KILLS} kills of Patroni and PostgreSQL of the primary`, killed, load.refused);
    const before = load.refused;
    const switched: number[] = [];
    for (let round = 0; round < SWITCHOVERS; round += 1) {
      await load.more(CALLS);
      const leader = await cluster.leader();
      load.gaps();
      await cluster.switchover();
      await load.goesOn();
      switched.push(...load.gaps());
      await cluster.whole();
      expect(await cluster.leader()).not.toBe(leader);
    }
    told(`${SWITCHOVERS} switchovers`, switched, load.refused - before);
    await load.more(CALLS);
    await load.stop();
    expect(load.odd.slice(0, 5)).toEqual([]);
    await expectSettledOnce(world, load);
    console.log(
      `  ${load.acknowledged.length} calls, ${load.told.size} tasks and ${load.credits.length} credits acknowledged`,
    );
  },
);
