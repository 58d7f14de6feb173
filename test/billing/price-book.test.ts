import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPriceBook } from '#billing/compose';
import type { PriceVersion } from '#billing';
import { priceId } from '#billing/amounts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  beforeAll(async () => {
    engine = await openEngine(name);
  });
  afterAll(() => engine.dispose());

  const version = (service: string): PriceVersion => {
    const rates = { prompt: 150_000n, completion: 10n ** 15n };
    return { id: priceId('p', service, rates), provider: 'p', service, rates };
  };

  test('remembers a version as it was, for ever', async () => {
    const book = createPriceBook(engine.database, () => 5);
    await book.remember([version('a'), version('b')]);
    expect(await book.find(version('a').id)).toEqual({ ...version('a'), createdAt: 5 });
    expect(await book.find('unknown')).toBeNull();
    // Another gateway that learns the same price later.
    const other = createPriceBook(engine.database, () => 6);
    await other.remember([version('b'), version('c'), version('a')]);
    expect(await other.find(version('b').id)).toEqual({ ...version('b'), createdAt: 5 });
    expect(await other.find(version('c').id)).toEqual({ ...version('c'), createdAt: 6 });
  });

  test('keeps the ledger waiting for some of many versions at a time, and not for all', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => version(`many-${index}`));
    const sizes: number[] = [];
    const { database } = engine;
    const book = createPriceBook({
      ...database,
      batch: (steps) => {
        sizes.push(steps.length);
        return database.batch(steps);
      },
    });
    await book.remember(many);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(200);
    await book.remember(many);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(1_000);
    for (const one of [many[0]!, many[999]!]) expect(await book.find(one.id)).toMatchObject(one);
  });
});
