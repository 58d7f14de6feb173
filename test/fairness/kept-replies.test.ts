import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bystand, expectUnharmed } from '../support/bystander.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { chat, honest, MANY_KEYS, startOneOrigin, type OneOrigin } from './support/one-origin.ts';

/** By day a tenth of what one account may keep by default, as so many calls take long. */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const [KEPT_MIB, KEPT_CALLS] = DEEP ? [32, 800] : [4, 100];
const LARGE_CALLS = DEEP ? 20 : 8;
const SLOW = { timeout: 180_000 };
const MIB = 1024 * 1024;
/** The embedded database writes its log over again once it has 4,000 pages. */
const LOG_BYTES = 20 * MIB;

const bytesIn = (dir: string): number =>
  readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);

let origin: OneOrigin;
let gateway: Gateway;
beforeAll(async () => {
  origin = await startOneOrigin();
  gateway = await startGateway({ toml: `${MANY_KEYS}kept_replies_bytes_max = ${KEPT_MIB * MIB}\n${origin.toml}` });
});
afterAll(async () => {
  await gateway.stop();
  await origin.close();
});

test(
  'replies that one account has kept for nothing take little of the disk, and none of the time of others',
  SLOW,
  async () => {
    const greedy = await gateway.openAccount('greedy', 1);
    const other = await gateway.openAccount('other', 1);
    const call = honest(gateway, other.key);
    await call();
    /**
     * Makes calls whose answers are as large as may be kept, one after the other, so many or until it is told to stop.
     */
    const keep = async (keyed: boolean, until: { readonly calls: number; over?: boolean }) => {
      for (let n = 0; n < until.calls && !until.over; n++) {
        const response = await chat(gateway, greedy.key, '64000', keyed ? { idempotencyKey: `key ${n}` } : {});
        expect(response.status).toBe(200);
        await response.text();
      }
    };
    // The same calls without keys take their part of the machine as well.
    const unkept = { calls: Infinity, over: false };
    const calling = keep(false, unkept);
    const before = await bystand({ call });
    unkept.over = true;
    await calling;

    const disk = bytesIn(gateway.dataDir);
    const keeping = keep(true, { calls: KEPT_CALLS });
    const during = await bystand({ call });
    await keeping;
    expect(bytesIn(gateway.dataDir) - disk).toBeLessThan((KEPT_MIB + 4) * MIB + LOG_BYTES);
    expectUnharmed(before, during);

    const again = async (key: string) =>
      (await chat(gateway, greedy.key, '64000', { idempotencyKey: key })).headers.get('idempotent-replayed');
    expect(await again(`key ${KEPT_CALLS - 1}`)).toBe('true');
    // It cost nothing, and makes room: it is run again.
    expect(await again('key 0')).toBeNull();
  },
);

test('a reply that is too large to be kept is not, and a repeat is told so', SLOW, async () => {
  const { key } = await gateway.openAccount('large', 1);
  const disk = bytesIn(gateway.dataDir);
  for (let n = 0; n < LARGE_CALLS; n++) {
    const response = await chat(gateway, key, '7900000', { idempotencyKey: `key ${n}` });
    expect((await response.text()).length).toBeGreaterThan(7_900_000);
  }
  const grown = bytesIn(gateway.dataDir) - disk;
  console.log(`  ${LARGE_CALLS} replies of 7.9 MB: ${(grown / MIB).toFixed(1)} MiB of disk`);
  expect(grown).toBeLessThan(2 * MIB);
  const again = await chat(gateway, key, '7900000', { idempotencyKey: 'key 3' });
  expect([again.status, await again.json()]).toMatchObject([
    409,
    { error: { type: 'idempotency_conflict', message: expect.stringMatching(/not kept/) as string } },
  ]);
});
