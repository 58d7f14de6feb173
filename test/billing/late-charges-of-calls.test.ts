import { expect, test } from 'vitest';
import { mayBeLate } from '../../src/gateway/call/billing.ts';
import type { Call } from '#call';

const plain = {
  adapter: { endsWithCall: true },
  lendable: 0n,
  parent: null,
  continues: null,
  wantsReceipt: false,
  caller: {},
};
const isLate = (changes: object) => mayBeLate({ ...plain, ...changes } as unknown as Call);

test('the charge of a plain call may be late', () => expect(isLate({})).toBe(true));

test.each([
  ['that may become a task', { adapter: {} }],
  ['that lends to others', { lendable: 1n }],
  ['under another', { parent: 'call' }],
  ['that continues another', { continues: 'call' }],
  ['with a receipt', { wantsReceipt: true }],
  ['with a quote', { quote: 'quote' }],
  ['with an approval', { approval: 'approval' }],
  ['with a payment', { payment: {} }],
  ['of a caller who pays in place', { caller: { paying: { from: 'here' } } }],
  ['of a batch or a run', { caller: { run: {} } }],
  ['that outlives its client', { outlivesClient: true }],
  ['whose reply is kept for a repeat', { isRepeatable: true }],
])('the charge of a call %s is on the disk before its answer', (_name, changes) => expect(isLate(changes)).toBe(false));
