import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, inject, test, vi } from 'vitest';
import { escrowOf } from '#billing';
import { freshDatabase } from '../support/fresh-database.ts';
import { startProvider } from '../support/provider.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

test('a call that one gateway asked for is accepted at another, told to the webhook, and runs once at either', async () => {
  const told: { event: string; approval: { id: string }; key: { name: string } }[] = [];
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      told.push(JSON.parse(Buffer.concat(chunks).toString()) as (typeof told)[number]);
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const database = await freshDatabase(inject('postgresUrl'));
  const provider = await startProvider();
  const start = () =>
    startSpine({
      databaseUrl: database.url,
      provider,
      toml: `${UNHURRIED}[webhooks]\nallow_private = true\n`,
      env: { TOLLGATE_PUBLIC_URL: 'https://gateway.example' },
    });
  const [one, other] = [await start(), await start()] as const;
  const { account, key } = await one.tenant('asking', '1', { askAbove: 10n });
  const full = (await one.app.keys.create({ account, label: 'full', kind: 'live' }))!.text;
  const bearer = (by: string) => ({ authorization: `Bearer ${by}` });
  const hook = await fetch(`${one.url}/limits/webhook`, {
    method: 'PATCH',
    headers: { ...bearer(full), 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  });
  expect(hook.status).toBe(200);
  const call = (at: Spine) => at.post('/chat/completions', ask('hello !tokens:5'), bearer(key));
  const money = async () => (await one.app.ledger.balance(escrowOf(account)))!;
  const before = await money();

  const waiting = (await (await call(one)).json()) as { approval: { id: string } };
  const { id } = waiting.approval;
  expect((await (await call(other)).json()) as object).toMatchObject({ approval: { id } });
  await vi.waitFor(() => expect(told).toMatchObject([{ event: 'approval.waiting', approval: { id } }]), 60_000);
  expect(told[0]!.key.name).toBe('asking');
  // It is no notice of a budget.
  expect(await (await other.get('/limits/notices', bearer(full))).json()).toEqual({ data: [] });
  expect(await money()).toEqual(before);

  expect((await other.post(`/approvals/${id}`, { decision: 'accept' }, bearer(full))).status).toBe(200);
  const answers = await Promise.all([one, other, one, other].map(call));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403, 403, 403]);
  await one.quiet();
  const { cost_micro_usdc: cost } = await one.generation(
    answers.find(({ status }) => status === 200)!.headers.get('x-generation-id'),
    full,
  );
  expect(before.available - (await money()).available).toBe(BigInt(cost));
  for (const gateway of [one, other]) {
    expect(await gateway.faults()).toEqual([]);
    await gateway.stop();
  }
  await provider.stop();
  await database.drop();
  receiver.close();
});
