import { expect, test } from 'vitest';
import { adHoc } from '../../../support/ad-hoc.ts';
import { ask } from '../../../support/spine.ts';
import { model } from '../../../gateway/network/registry/registry-world.ts';
import { startSupplied } from './supplied-spine.ts';

// Registering costs a provider nothing, so it leaves no price behind: a price is written down with the first call
// at it.

const PRICES = adHoc('SELECT id, provider FROM prices');

test('a registration keeps no price; the first call at it keeps that one, before its lock', async () => {
  const { spine, supply } = await startSupplied();
  const keptOf = async (id: string) =>
    (await spine.app.database.query(PRICES)).filter(({ provider }) => provider === id);
  const suppliers = [];
  for (let price = 1_000; price < 1_010; price++)
    suppliers.push(await supply(model(`many/model-${price}`, { providerName: `Many ${price}`, price })));
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
