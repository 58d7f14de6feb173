import type { Settlement, Usage } from '#billing';

/** How a task ended, as it is kept from the first moment on: whoever settles its calls, and whenever, goes by this. */
export interface Ending {
  readonly outcome: 'complete' | 'cut' | 'free';
  /** Why it ended, as the records of its calls say. */
  readonly reason: string;
  /** What each call used, by its id; null for one whose usage was not told. */
  readonly usage: ReadonlyMap<string, Usage | null>;
}

type Units = readonly (readonly [meter: string, units: string])[];

export function endingToText({ outcome, reason, usage }: Ending): string {
  const calls = [...usage].map(([id, used]) => [id, used && Object.entries(used).map(([meter, units]) => [meter, String(units)])]);
  return JSON.stringify({ outcome, reason, usage: calls });
}

/** The inverse of endingToText. */
export function endingFromText(text: string): Ending {
  const { outcome, reason, usage } = JSON.parse(text) as {
    readonly outcome: Ending['outcome'];
    readonly reason: string;
    readonly usage: readonly (readonly [string, Units | null])[];
  };
  const used = usage.map(([id, units]) => [id, units && Object.fromEntries(units.map(([meter, count]) => [meter, BigInt(count)]))] as const);
  return { outcome, reason, usage: new Map(used) };
}

/** A settlement as JSON text of micro-USD in decimals. */
export function settlementToText({ charged, fee, drawn, shortfall }: Settlement): string {
  return JSON.stringify([charged, fee, drawn, shortfall].map(String));
}

/** The inverse of settlementToText. */
export function settlementFromText(text: string): Settlement {
  const [charged, fee, drawn, shortfall] = (JSON.parse(text) as readonly string[]).map(BigInt);
  return { charged: charged!, fee: fee!, drawn: drawn!, shortfall: shortfall! };
}
