import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSealedContent } from '#batch-jobs';
import { ENGINES } from '../../support/engines.ts';
import { batchWorld, lineOf, PRICE } from './batches-world.ts';

const HOUR_MS = 3_600_000;

describe('contents are sealed', () => {
  const secret = randomBytes(32);
  const content = createSealedContent(secret);
  const bytes = Buffer.from('a line, '.repeat(1_000));

  it('for their account, and compressed', async () => {
    const sealed = await content.seal('alice', bytes);
    expect(sealed.byteLength).toBeLessThan(bytes.byteLength / 10);
    expect(await content.open('alice', sealed)).toEqual(bytes);
    await expect(content.open('bobby', sealed)).rejects.toThrow('another identity');
    expect(content.openText('bobby', content.sealText('alice', 'requests.jsonl'))).toBeNull();
  });

  it('with the secret of the gateway, and cannot be changed', async () => {
    const sealed = await content.seal('alice', bytes);
    await expect(createSealedContent(randomBytes(32)).open('alice', sealed)).rejects.toThrow('another identity');
    sealed[sealed.length - 1]! ^= 1;
    await expect(content.open('alice', sealed)).rejects.toThrow('another identity');
    await expect(content.open('alice', Buffer.alloc(3))).rejects.toThrow('another identity');
  });
});

describe.each(ENGINES)('what is over on %s', (engine) => {
  it('is removed after its time, the results before their batch', async () => {
    const world = await batchWorld(engine);
    const { id } = await world.create([lineOf('a'), lineOf('b')]);
    await world.work(id);
    const batch = await world.find(id);
    expect((await world.results(batch)).output).toHaveLength(2);
    await world.sweep();
    expect((await world.results(batch)).output).toHaveLength(2);
    world.clock.now += HOUR_MS + 1;
    expect((await world.results(batch)).output).toEqual([]);
    await world.sweep();
    expect(await world.find(id)).toBeNull();
    // The ledger keeps the calls.
    expect(await world.charges(batch)).toEqual([PRICE, PRICE]);
    await world.spent(2n * PRICE);
  });

  it('not the input of a batch that has not ended', async () => {
    const world = await batchWorld(engine);
    const { id } = await world.create([lineOf('a')]);
    world.clock.now += 23 * HOUR_MS;
    await world.sweep();
    await world.work(id);
    expect(await world.find(id)).toMatchObject({ status: 'completed', completed: 1 });
    await world.spent(PRICE);
  });
});
