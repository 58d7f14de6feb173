import type { Withdrawal } from '../../../api/own.ts';

/** The words and colours for the states of a withdrawal. */
export const WITHDRAWAL_STATES = {
  pending: ['Waiting', 'warn'],
  processing: ['On its chain', 'warn'],
  paid: ['Paid', 'good'],
  canceled: ['Canceled', 'plain'],
  returned: ['Given back', 'warn'],
  refused: ['Refused', 'bad'],
} as const satisfies Record<Withdrawal['status'], unknown>;
