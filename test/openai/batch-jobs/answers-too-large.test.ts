import { expect, it } from 'vitest';
import { completionOf, resultOf, type BatchProvider, type ProviderLine } from '../../support/batch-provider.ts';
import { batchWorld, heldLineOf, LIMITS, PRICE } from './batches-world.ts';

// What a provider answers beyond the limits is told as what it is, and is charged, because its provider has done it.

const CODE = 'provider_answer_too_large';

/** The provider ends each batch at once, with these answers. */
function answers(provider: BatchProvider, answer: (line: ProviderLine, n: number) => string): void {
  provider.after = (method, path) => {
    if (method !== 'POST' || path !== '/batches') return undefined;
    const there = provider.batches.at(-1)!;
    provider.end(there, 'completed', (line) => answer(line, there.lines.indexOf(line)));
    return undefined;
  };
}

it('a line beyond the size of a reply has an error with both numbers; those around it are read', async () => {
  const world = await batchWorld('sqlite');
  const max = LIMITS.replyBytesMax + 4_096;
  let size = 0;
  answers(world.provider, (line, n) => {
    if (n !== 1) return resultOf(line, completionOf('.'));
    const large = resultOf(line, completionOf('x'.repeat(300_000)));
    size = Buffer.byteLength(large);
    return large;
  });
  const { id } = await world.create(['a', 'b', 'c'].map(heldLineOf));
  await world.work(id);
  const batch = await world.find(id);
  expect(batch).toMatchObject({ status: 'completed', completed: 2, failed: 1 });
  const { output, errors } = await world.results(batch);
  expect(output.map((line) => line.custom_id)).toEqual(['a', 'c']);
  expect(errors).toMatchObject([{ custom_id: 'b', response: null, error: { code: CODE } }]);
  expect(errors[0]!.error!.message).toContain(`has ${size} bytes, and at most ${max} are read`);
  await world.spent(3n * PRICE);
});

it('a line at the size of a reply is read', async () => {
  const world = await batchWorld('sqlite');
  answers(world.provider, (line) => {
    const empty = resultOf(line, completionOf(''));
    return resultOf(line, completionOf('x'.repeat(LIMITS.replyBytesMax + 4_096 - Buffer.byteLength(empty))));
  });
  const { id } = await world.create([heldLineOf('a')]);
  await world.work(id);
  expect(await world.find(id)).toMatchObject({ completed: 1, failed: 0 });
  await world.spent(PRICE);
});

it('lines beyond the size of a file of results have an error with both numbers; all are charged', async () => {
  const world = await batchWorld('sqlite');
  const bytes = 40_000;
  answers(world.provider, (line) => resultOf(line, completionOf('x'.repeat(bytes))));
  const names = Array.from({ length: 40 }, (_, n) => `line-${n}`);
  const { id } = await world.create(names.map(heldLineOf));
  let size = 0;
  world.provider.intercept = (_, path) => {
    const file = /^\/files\/(.+)\/content$/.exec(path)?.[1];
    if (file !== undefined) size = Buffer.byteLength(world.provider.files.get(file)!);
    return undefined;
  };
  await world.work(id);
  const batch = await world.find(id);
  expect(batch).toMatchObject({ status: 'completed', total: names.length });
  expect(batch.completed).toBeGreaterThan(LIMITS.resultBytesMax / bytes - 3);
  const { errors } = await world.results(batch);
  expect(errors.length).toBe(names.length - batch.completed);
  for (const { error } of errors) {
    expect(error!.code).toBe(CODE);
    expect(error!.message).toMatch(
      new RegExp(
        `has (${size}|more than ${LIMITS.resultBytesMax}) bytes, and at most ${LIMITS.resultBytesMax} are read`,
      ),
    );
  }
  await world.spent(BigInt(names.length) * PRICE);
});
