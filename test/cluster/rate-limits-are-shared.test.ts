import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { parseUsd } from '#billing/amounts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { burst, callAs, whileShared } from '../support/rate-burst.ts';
import type { Spine } from '../support/spine.ts';
import { SIGN_IN_TOML, signInHeaders, solanaWallet } from '../support/wallets.ts';

// A caller has one rate, whichever gateways it calls: so many a minute and a burst on top, in all.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const [PER_MINUTE, BURST] = DEEP ? [60, 20] : [12, 8];
/** Of all keys of an account together. */
const OF_ACCOUNT = 1.5 * PER_MINUTE;
/** As many as would pass if each gateway had a rate of its own, and some more. */
const CALLS = DEEP ? 300 : 66;

let cluster: Cluster<Spine>;
beforeAll(async () => {
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    redisUrl: inject('redisUrl'),
    toml: `[limits]\nrequests_per_minute = ${PER_MINUTE}\naccount_requests_per_minute = ${OF_ACCOUNT}\nburst = ${BURST}\n${SIGN_IN_TOML}`,
  });
});
afterAll(async () => {
  expect(await cluster?.gateways[0]!.faults()).toEqual([]);
  await cluster?.stop();
});

/** A caller that has made no call yet calls all gateways at once. */
const expectOneRate = (
  callerOf: (attempt: number) => Promise<(call: number) => Record<string, string>>,
  perMinute = PER_MINUTE,
) =>
  whileShared(cluster.gateways, async (attempt) => {
    const headersOf = await callerOf(attempt);
    const { passed, seconds, answers } = await burst(cluster.gateways, CALLS, headersOf);
    expect(answers.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
    expect(passed).toBeGreaterThanOrEqual(perMinute + BURST);
    // One more for each second that it took.
    expect(passed).toBeLessThanOrEqual(perMinute + BURST + Math.ceil((seconds * perMinute) / 60));
    for (const { status, headers } of answers)
      if (status === 429) {
        expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
        expect(headers.get('x-ratelimit-remaining-requests')).toBe('0');
      }
    // Each refuses what has passed at the others, but for what came back in a second since.
    for (const gateway of cluster.gateways) {
      const { status, headers } = await callAs(gateway, headersOf(0));
      if (status !== 429) expect(Number(headers.get('x-ratelimit-remaining-requests'))).toBeLessThanOrEqual(2);
    }
  });

test('of an API key', () =>
  expectOneRate(async (attempt) => {
    const { key } = await cluster.gateways[0]!.tenant(`hurried-${attempt}`, '1');
    return () => ({ authorization: `Bearer ${key}` });
  }));

test('of an account, however many keys it has', () =>
  expectOneRate(async (attempt) => {
    const gateway = cluster.gateways[0]!;
    const { key, account } = await gateway.tenant(`many-keys-${attempt}`, '1');
    const more = await Promise.all(
      [1, 2, 3].map(() => gateway.app.keys.create({ account, label: 'more', kind: 'live' })),
    );
    const keys = [key, ...more.map((one) => one!.text)];
    return (call) => ({ authorization: `Bearer ${keys[call % keys.length]!}` });
  }, OF_ACCOUNT));

test('of a wallet, however many times it signs in', () =>
  expectOneRate(async () => {
    const wallet = solanaWallet();
    const { ledger } = cluster.gateways[0]!.app;
    await ledger.transfer({
      id: `rate-${wallet.address}`,
      from: treasuryOf('operator'),
      to: escrowOf(wallet.account),
      amount: parseUsd('1'),
      memo: '',
    });
    const signedIn = await Promise.all(
      Array.from({ length: 10 }, (_, index) => signInHeaders(wallet, { statement: `Number ${index}.` })),
    );
    return (index) => signedIn[index % signedIn.length]!;
  }));

test('another caller has a rate of its own', async () => {
  const { key } = await cluster.gateways[0]!.tenant('unhurried', '1');
  expect((await callAs(cluster.gateways[1]!, { authorization: `Bearer ${key}` })).status).toBe(200);
});
