import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FreeIds } from '../../src/billing/ledger/ledger-memory.ts';

const ID = fc.string({ unit: fc.constantFrom('a', 'b', '7', 'ü', '\u{1F600}', '\uFFFD'), minLength: 1, maxLength: 4 });
/** As the database orders them. */
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

test('an id that is called free is one that no lock has', () => {
  const step = fc.record({ id: ID, do: fc.constantFrom('learn', 'take') });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.array(ID), (steps, before) => {
      const taken = new Set(before);
      const free = new FreeIds();
      for (const { id, do: what } of steps) {
        if (what === 'take') {
          free.take(id);
          taken.add(id);
        } else if (!taken.has(id)) {
          const ids = [...taken].sort(byBytes);
          free.learn({
            after: ids.findLast((other) => byBytes(other, id) < 0) ?? null,
            before: ids.find((other) => byBytes(other, id) > 0) ?? null,
          });
        }
        for (const other of taken) expect({ other, isFree: free.isFree(other) }).toEqual({ other, isFree: false });
      }
    }),
    { numRuns: 500 },
  );
});

test('the ids of a counter are free after one look-up', () => {
  const free = new FreeIds();
  expect(free.isFree('gen-x-001')).toBe(false);
  free.learn({ after: 'gen-w', before: 'gen-y' });
  for (const id of ['gen-x-001', 'gen-x-002', 'gen-x-010']) {
    expect(free.isFree(id)).toBe(true);
    free.take(id);
    expect(free.isFree(id)).toBe(false);
  }
});
