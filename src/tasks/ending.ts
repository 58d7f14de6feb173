import type { Settlement } from '#billing';
import type { ProviderFlag, ReportedUsage } from '#gateway';

/**
 * The end of a task, stored when the end is first seen. Every gateway settles the task's calls by this record, also
 * later.
 */
export interface Ending {
  readonly outcome: 'complete' | 'cut' | 'free';
  /** The reason for the end, as shown in the records of its calls. */
  readonly reason: string;
  /** The usage of each call, by call id, with the flags of the usage report. */
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

/** A settlement as a JSON array of decimal texts in micro-USD. */
export function settlementToText({ charged, fee, drawn, shortfall }: Settlement): string {
  return JSON.stringify([charged, fee, drawn, shortfall].map(String));
}

/** The inverse of settlementToText. */
export function settlementFromText(text: string): Settlement {
  const [charged, fee, drawn, shortfall] = (JSON.parse(text) as readonly string[]).map(BigInt);
  return { charged: charged!, fee: fee!, drawn: drawn!, shortfall: shortfall! };
}
