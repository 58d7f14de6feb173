import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { ask, type Spine } from '../support/spine.ts';

// An offer that rests at one gateway is not shown as healthy to the operator by another one.

interface Offer {
  readonly service: string;
  readonly status: string;
  readonly status_reason: string | null;
  readonly status_call: string | null;
  readonly failing_accounts: readonly string[];
}

let cluster: Cluster<Spine>;
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), redisUrl: inject('redisUrl') });
});
afterAll(() => cluster?.stop());

const offerAt = async ({ origin, adminKey }: Spine) => {
  const answer = await fetch(`${origin}/admin/v1/services`, { headers: { authorization: `Bearer ${adminKey}` } });
  const { data } = (await answer.json()) as { readonly data: readonly Offer[] };
  return data.find(({ service }) => service === 'test/model')!;
};
const call = async (gateway: Spine, text: string, key: string) =>
  (await gateway.post('/chat/completions', ask(text), { authorization: `Bearer ${key}` })).text();

test('every gateway shows the operator what fails for an account at one of them, with its error', async () => {
  const [first, second] = cluster.gateways as [Spine, Spine];
  const { account, key } = await first.tenant('customer', '1');
  await call(first, 'hello', key);
  await call(second, 'hello', key);
  expect(await offerAt(second)).toMatchObject({ status: 'healthy', failing_accounts: [] });
  await call(first, 'hello !status:500', key);
  // What a gateway shows of itself it also reports.
  const seen = await offerAt(first);
  expect(seen).toMatchObject({ status: 'degraded', failing_accounts: [account] });
  expect(seen.status_reason).toContain('500');
  const { status, status_reason, status_call, failing_accounts } = seen;
  expect(await offerAt(second)).toMatchObject({ status, status_reason, status_call, failing_accounts });
  await call(first, 'hello', (await first.tenant('another', '1')).key);
  await offerAt(first);
  expect(await offerAt(second)).toMatchObject({ status: 'healthy', failing_accounts: [] });
  expect(await first.faults()).toEqual([]);
});
