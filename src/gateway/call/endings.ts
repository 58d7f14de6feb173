import type { Cut } from './call.ts';

/**
 * The charge of a call. `usage`: the usage that the provider reports, within the lock. `measure`: the input and
 * the output that came, as the gateway measures them. `input`: the measure of the request alone. `flag`: nothing, and
 * the provider is flagged, or the measure where an answer shows its work: see the kinds. `nothing`: the call is free.
 */
export type Charge = 'usage' | 'measure' | 'input' | 'flag' | 'nothing';

/** The charge with and without a usage that the provider has reported. */
interface Charges {
  readonly reported: Charge;
  readonly unreported: Charge;
}

interface EndingRow {
  readonly ending: string;
  /** The party that caused the end; null for an answer that is whole. */
  readonly cause: 'consumer' | 'gateway' | 'provider' | null;
  /** At the operator's own provider, which bills the operator. */
  readonly own: Charges;
  /** At a provider that dialled in, which is paid for what came. */
  readonly dialledIn: Charges;
}

const both = (reported: Charge, unreported: Charge) => {
  const charges = { reported, unreported };
  return { own: charges, dialledIn: charges };
};

const FREE: Charges = { reported: 'nothing', unreported: 'nothing' };
const INPUT: Charges = { reported: 'usage', unreported: 'input' };

/**
 * The charges by the way in which a call ends. The rule: what the operator's own provider has taken, and must be
 * believed to bill, is paid by whoever caused the end, input included. What its own faults cost, the operator bears.
 * docs/reference/endings.md shows this table, and a test runs every row.
 */
export const ENDINGS = {
  complete: { ending: 'complete', cause: null, ...both('usage', 'flag') },
  empty: {
    ending: 'complete without output: empty, silence, or all of it was thinking',
    cause: null,
    ...both('usage', 'flag'),
  },
  left: {
    ending: 'its client left or cancelled before any output',
    cause: 'consumer',
    own: INPUT,
    dialledIn: FREE,
  },
  left_midway: { ending: 'its client left or cancelled midway', cause: 'consumer', ...both('usage', 'measure') },
  too_large: {
    ending: 'given up for its size, its structure or a lack of memory, without a part that can be delivered',
    cause: 'consumer',
    own: INPUT,
    dialledIn: FREE,
  },
  too_large_midway: {
    ending: 'cut for its size or a lack of memory midway',
    cause: 'consumer',
    ...both('usage', 'measure'),
  },
  late: {
    // The provider was at work: one that is silent fails before. An answer in one piece is silent until it is done.
    ending: 'not done within the time of a call, or in one piece and not begun in time, without output',
    cause: 'consumer',
    own: INPUT,
    dialledIn: FREE,
  },
  late_midway: { ending: 'not done within the time of a call, midway', cause: 'consumer', ...both('usage', 'measure') },
  over_cap: { ending: 'output past its cap, which it was sent', cause: 'provider', ...both('measure', 'measure') },
  refused: {
    ending: 'refused by its provider (a status of 400 or more)',
    cause: 'provider',
    own: FREE,
    dialledIn: FREE,
  },
  failed: {
    ending: 'failed: connection lost, an error instead of a reply or midway, a silent stream, malformed',
    cause: 'provider',
    own: FREE,
    dialledIn: FREE,
  },
  stopped: {
    ending: 'ended by the gateway: it stops, it crashes, an operator ends the call',
    cause: 'gateway',
    own: FREE,
    dialledIn: FREE,
  },
} as const satisfies Readonly<Record<string, EndingRow>>;

export type CallEnding = keyof typeof ENDINGS;

const CUTS = {
  cancelled: ['left', 'left_midway'],
  too_large: ['too_large', 'too_large_midway'],
  timeout: ['late', 'late_midway'],
} as const satisfies Readonly<Record<Cut['reason'], readonly [before: CallEnding, midway: CallEnding]>>;

/** The charge of a cut reply. `came`: a part of it was delivered. `reported`: its provider has reported a usage. */
export function chargeOfCut(
  { reason, own }: Pick<Cut, 'reason' | 'own'>,
  { came, reported }: { readonly came: boolean; readonly reported: boolean },
): Charge {
  const row: EndingRow = ENDINGS[CUTS[reason][came ? 1 : 0]];
  const charges = own ? row.own : row.dialledIn;
  return reported ? charges.reported : charges.unreported;
}
