import { expect, onTestFinished, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { expectSettledOnce, quantiles, startMixedGateways, startMixedLoad } from '../support/mixed-load.ts';
import { askServer, startAddress, startServer, startStandby, type Defer } from '../support/standby.ts';

const [PROMOTIONS, CALLS] = process.env['TOLLGATE_DEEP'] === '1' ? [50, 200] : [2, 60];
const BACK_MS_MAX = 15_000;

test(
  `${PROMOTIONS} failovers to a synchronous standby under calls of all kinds: what was acknowledged is settled once, and all gateways go on`,
  { timeout: 7_200_000 },
  async () => {
    const defer: Defer = onTestFinished;
    let primary = await startServer(defer);
    const address = await startAddress(primary, defer);
    const world = await startMixedGateways(address.url, 3, defer);
    const load = startMixedLoad(world, 7);
    const backMs: number[] = [];
    for (let round = 0; round < PROMOTIONS; round += 1) {
      const standby = await startStandby(primary, true, defer);
      await load.more(CALLS);
      await primary.kill9();
      const back = load.goesOn();
      await standby.promote();
      await askServer(standby, 'ALTER SYSTEM RESET synchronous_standby_names');
      await askServer(standby, 'SELECT pg_reload_conf()');
      address.leadTo(standby);
      backMs.push(...(await back));
      primary = standby;
    }
    await load.more(CALLS);
    await load.stop();
    expect(load.odd.slice(0, 5)).toEqual([]);
    await expectSettledOnce(world, load);
    console.log(
      `  ${PROMOTIONS} promotions: ${load.acknowledged.length} calls, ${load.told.size} tasks and ${load.credits.length} credits acknowledged, ${load.refused} refused; from the kill until calls go on ${quantiles(backMs)}`,
    );
    expect(Math.max(...backMs)).toBeLessThan(atThisLoad(BACK_MS_MAX));
  },
);
