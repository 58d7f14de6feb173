import { describe, expect, it } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { batchWorld, heldLineOf, Life, lineOf } from './batches-world.ts';

/** More than a batch of three lines takes. */
const STEPS = 100;
const IDS = ['a', 'b', 'c'];

describe.each(ENGINES)('a batch whose input becomes unreadable on %s', (engine) => {
  it.each([
    ['lines that are called one by one', lineOf],
    ['lines that a provider has', heldLineOf],
  ])('after any step ends, with its money given back: %s', async (_name, line) => {
    const world = await batchWorld(engine);
    const ends = new Map<string, number>();
    let spent = 0n;
    let unreadable = 0;
    for (let steps = 0; steps < STEPS; steps += engine === 'sqlite' && process.env['TOLLGATE_DEEP'] === '1' ? 1 : 7) {
      const { id } = await world.create(IDS.map(line));
      await world.work(id, new Life(steps));
      world.changeIdentity();
      await world.work(id);
      const batch = await world.find(id);
      expect(batch.endedAt, `after ${steps} steps`).not.toBeNull();
      ends.set(batch.status, (ends.get(batch.status) ?? 0) + 1);
      if (batch.status === 'failed')
        expect(batch.errors).toMatchObject([{ code: 'unreadable_file', param: 'input_file_id' }]);
      // The results from before cannot be read either.
      if (batch.completed === 0) {
        const { errors } = await world.results(batch);
        for (const { error } of errors) expect(error!.code).toBe('unreadable_file');
        unreadable += errors.length;
      }
      spent += (await world.charges(batch)).reduce((sum, charged) => sum + charged, 0n);
      await world.spent(spent);
    }
    expect(ends.get('failed')).toBeGreaterThan(0);
    expect(ends.get('completed')).toBeGreaterThan(0);
    expect(unreadable).toBeGreaterThan(0);
  });
});
