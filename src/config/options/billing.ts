import { callCost } from '../blocks/price-option.ts';
import { choice, whole } from '../option.ts';
import { HOUR_MS, MIB } from '../units.ts';

/** `[billing]`: money of calls. */
export const BILLING = {
  fee_bps: whole({
    min: 0,
    max: 10_000,
    default: 0,
    meaning:
      "Operator's fee in basis points of the cost of a call: 100 is one percent. Parts of a micro-USD are rounded so that the sum over many calls is right.",
  }),
  drain_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long the gateway goes on reading a reply after the client has left, to get its usage.',
  }),
  drain_bytes: whole({
    min: 0,
    max: 1024 * MIB,
    default: 16 * MIB,
    meaning: 'How many bytes of a reply the gateway goes on reading after the client has left, to get its usage.',
  }),
  sweep_ms: whole({
    min: 50,
    max: HOUR_MS,
    default: 10_000,
    meaning: 'Time between two searches for expired locks.',
  }),
  receipts: choice({
    of: ['always', 'on-request'],
    default: 'on-request',
    meaning:
      'Whether every answer that is not streamed has a signed receipt, or only those to requests with `x-receipt: 1`.',
  }),
  run_cost_max: callCost(
    'Largest cost of a chat request whose model calls tools through the gateway, if the request has no `max_cost`. This amount is locked for all of its calls.',
    { text: '1', fallback: 1_000_000n },
  ),
};
