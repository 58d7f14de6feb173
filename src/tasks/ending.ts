import type { Settlement } from '#billing';
import type { ProviderFlag, ReportedUsage } from '#gateway';

/**
 * How a task ended, as it is kept from the first moment on: whoever settles its calls, and whenever, goes by this.
 */
export interface Ending {
  readonly outcome: 'complete' | 'cut' | 'free';
  /** Why it ended, as the records of its calls say. */
  readonly reason: string;
  /** The usage of each call by its id, with the flags of its report. */
  readonly used: ReadonlyMap<string, ReportedUsage>;
}

type Units = readonly (readonly [meter: string, units: string])[];

export function endingToText({ outcome, reason, used }: Ending): string {
  const calls = [...used].map(([id, { usage, flags }]) => [
    id,
    usage && Object.entries(usage).map(([meter, units]) => [meter, String(units)]),
    ...(flags.length > 0 ? [flags] : []),
  ]);
  return JSON.stringify({ outcome, reason, usage: calls });
}

/** The inverse of endingToText. */
export function endingFromText(text: string): Ending {
  const { outcome, reason, usage } = JSON.parse(text) as {
    readonly outcome: Ending['outcome'];
    readonly reason: string;
    readonly usage: readonly (readonly [string, Units | null, (readonly ProviderFlag[])?])[];
  };
  const used = usage.map(([id, units, flags = []]) => {
    const counted = units && Object.fromEntries(units.map(([meter, count]) => [meter, BigInt(count)]));
    return [id, { usage: counted, flags }] as const;
  });
  return { outcome, reason, used: new Map(used) };
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
