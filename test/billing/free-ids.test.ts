import type { Query } from '#store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FreeIds, LedgerMemory, RowsInMemory } from '../../src/billing/ledger/ledger-memory.ts';

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

test('the id of a lock whose record reaches the disk while the gap is read is not free', async () => {
  const memory = new LedgerMemory();
  const record = {
    accounts: new Map(),
    budgets: new Map(),
    newLocks: [{ id: 'lock-2' }],
    resolvedLocks: [],
    changedLocks: [],
    transfers: [],
  } as unknown as ReturnType<ConstructorParameters<typeof RowsInMemory>[1]>[number];
  let unwritten = [record];
  const rows = new RowsInMemory(memory, () => unwritten);
  expect(rows.lock('lock-1')).toBe(undefined);
  // The tables have no lock yet. The record is written after the gap was read, and before it is learned.
  const query = (async (statement: { readonly name: string }) => {
    if (!/Gap/.test(statement.name)) return [];
    unwritten = [];
    return [{ after: null, before: null }];
  }) as unknown as Query;
  await rows.read(query);
  expect(memory.freeIds.isFree('lock-3')).toBe(true);
  expect(memory.freeIds.isFree('lock-2')).toBe(false);
});
