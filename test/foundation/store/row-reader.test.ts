import { expect, test } from 'vitest';
import { isOne, numberOrNull, rowReader } from '../../../src/foundation/store/statement.ts';

interface Thing {
  readonly id: string;
  readonly amount: bigint;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly handedOut: boolean;
  readonly transaction: string | null;
}

test('a column becomes the property of its name in camel case, converted where its type needs it', () => {
  const read = rowReader<Thing>(
    { createdAt: Number, endedAt: numberOrNull, handedOut: isOne },
    { transaction_id: 'transaction' },
  );
  const row = { id: 'a', amount: 5n, created_at: 7n, ended_at: null, handed_out: 1n, transaction_id: null };
  const thing = { id: 'a', amount: 5n, createdAt: 7, endedAt: null, handedOut: true, transaction: null };
  expect(read(row)).toEqual(thing);
  expect(read({ ...row, ended_at: 9n, handed_out: 0n })).toEqual({ ...thing, endedAt: 9, handedOut: false });
});
