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
      "Operator's fee in basis points of what a call costs; 100 is one percent. What is less than a micro-USD is rounded so that it comes out right over many calls.",
  }),
  drain_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning: 'How long a provider is read on for its usage after the client is gone.',
  }),
  drain_bytes: whole({
    min: 0,
    max: 1024 * MIB,
    default: 16 * MIB,
    meaning: 'How many bytes a provider is read on for its usage after the client is gone.',
  }),
  sweep_ms: whole({
    min: 50,
    max: HOUR_MS,
    default: 10_000,
    meaning: 'Time between two searches for locks that have expired.',
  }),
  receipts: choice({
    of: ['always', 'on-request'],
    default: 'on-request',
    meaning:
      'Sign a receipt into every answer that is not streamed, or only where the request asks for one with `x-receipt: 1`.',
  }),
  run_cost_max: callCost(
    'The most that a chat request costs whose model calls tools through the gateway, where the request has no `max_cost`: what is locked for all of its calls.',
    { text: '1', fallback: 1_000_000n },
  ),
};
