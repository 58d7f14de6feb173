import { expect, test } from 'vitest';
import { adHoc } from '../../../support/ad-hoc.ts';
import { ask } from '../../../support/spine.ts';
import { model } from '../../../gateway/network/registry/registry-world.ts';
import { startSupplied } from './supplied-spine.ts';

// Registrations and refused calls cost nothing, so they leave no price behind: a price is written down with the first
// call that gets a lock at it. (That quotes leave none is in test/gateway/call/used-quotes.test.ts.)

const PRICES = adHoc('SELECT id, provider FROM prices');

test('a refused call keeps none; one that its account can pay at some offers keeps only theirs', async () => {
  const { spine, supply } = await startSupplied();
  const kept = async () => (await spine.app.database.query(PRICES)).map(({ provider }) => provider as string);
  const before = await kept();
  const cheap = await supply(model('pair/model', { providerName: 'Cheap', price: 1_000 }));
  const dear = await supply(model('pair/model', { providerName: 'Dear', price: 50_000 }));
  const call = async (key: string, target = 'pair/model') => {
    const body = ask('hello !tokens:3', { model: target, max_tokens: 5 });
    const response = await spine.post('/chat/completions', body, { authorization: `Bearer ${key}` });
    return { status: response.status, text: await response.text() };
  };
  const poor = await spine.tenant('poor', '0.000001');
  const limited = await spine.tenant('limited', '100', { limit: 1n });
  expect((await call((await spine.tenant('broke', '0')).key)).status).toBe(424);
  for (const { key } of [poor, limited]) expect((await call(key)).status).toBe(402);
  expect(await kept()).toEqual(before);

  const [, most] = /estimated cost: ([\d.]+)/.exec((await call(poor.key, `${cheap.id}:pair/model`)).text)!;
  const able = await spine.tenant('able', most!);
  expect((await call(able.key)).status).toBe(200);
  expect(await kept()).toEqual([...before, cheap.id]);
  expect((await call(spine.key, `${dear.id}:pair/model`)).status).toBe(200);
  expect((await kept()).toSorted()).toEqual([...before, cheap.id, dear.id].toSorted());
  expect(await spine.faults()).toEqual([]);
});

test('a registration keeps no price; the first call at it keeps that one, before its lock', async () => {
  const { spine, supply } = await startSupplied();
  const keptOf = async (id: string) =>
    (await spine.app.database.query(PRICES)).filter(({ provider }) => provider === id);
  const suppliers = [];
  for (let price = 1_000; price < 1_010; price++)
    suppliers.push(await supply(model(`many-${price}/model`, { providerName: `Many ${price}`, price })));
  const [first, ...others] = suppliers;
  for (const { id } of suppliers) expect(await keptOf(id)).toEqual([]);
  const call = async () => {
    const response = await spine.post(
      '/chat/completions',
      ask('hello !tokens:3', { model: `${first!.id}:${first!.service.name}` }),
    );
    await response.text();
    return response.status;
  };
  expect(await Promise.all([call(), call(), call()])).toEqual([200, 200, 200]);
  expect(await keptOf(first!.id)).toHaveLength(1);
  for (const { id } of others) expect(await keptOf(id)).toEqual([]);
  expect(await spine.faults()).toEqual([]);
});
