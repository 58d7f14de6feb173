import type { Ledger, LockRecord, MicroUsd } from '#billing';
import { viewGeneration, type GenerationView } from './generation-view.ts';

/** The most calls of a tree that are shown. */
const CALLS_MAX = 1_000;

/** Returns the view of a call with the views of all calls under it. Without `receipt` they have no member for it. */
export async function viewTree(
  record: LockRecord,
  ledger: Pick<Ledger, 'children'>,
  receipt: ((record: LockRecord) => string | null) | null,
  networks: readonly string[],
): Promise<GenerationView> {
  let left = CALLS_MAX - 1;
  const view = async (one: LockRecord): Promise<{ readonly shown: GenerationView; readonly cost: MicroUsd }> => {
    const under = one.lendable > 0n && left > 0 ? await ledger.children(one.id, left) : [];
    left -= under.length;
    const children: GenerationView[] = [];
    let cost = one.charged;
    for (const child of under) {
      // oxlint-disable-next-line no-await-in-loop -- what is left to show is counted over the whole tree
      const seen = await view(child);
      children.push(seen.shown);
      cost += seen.cost;
    }
    return { shown: viewGeneration(one, receipt?.(one), networks, children, cost), cost };
  };
  return (await view(record)).shown;
}
