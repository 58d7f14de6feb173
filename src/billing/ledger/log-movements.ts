import { escrowOf, earningsOf } from './ledger.ts';
import type { JournalKind } from './ledger-changes.ts';
import { entriesOf, type LedgerEntry } from './ledger-log-rows.ts';

/** A movement of the journal as texts, in the order of JournalRow. */
export type MovementTexts = readonly [
  kind: JournalKind,
  id: string,
  account: string,
  counterparty: string | null,
  amount: string,
  charged: string,
  fee: string,
  drawn: string,
  price: string | null,
];

export interface TimedMovement {
  readonly movement: MovementTexts;
  /** Epoch milliseconds, if it was decided before the time of its record. */
  readonly at: number | undefined;
}

/** The movements of a record's payload, in their order; null if it cannot be read. */
export function movementsOf(payload: string): readonly TimedMovement[] | null {
  try {
    return entriesOf(payload).flatMap((entry) => {
      const at = entry[0] === 'lock' ? entry[9] : undefined;
      return movementsOfEntry(entry).map((movement) => ({ movement, at }));
    });
  } catch {
    return null;
  }
}

function movementsOfEntry(entry: LedgerEntry): readonly MovementTexts[] {
  switch (entry[0]) {
    case 'lock': {
      const [kind, id, account, amount, , , , , run] = entry;
      const lock = plain(kind, id, escrowOf(account), null, amount);
      const parent = run?.[0] ?? null;
      return parent === null ? [lock] : [plain('lend', id, escrowOf(account), parent, amount), lock];
    }
    case 'settle': {
      const [kind, id, account, held, price, provider, charged, fee, , drawn] = entry;
      return [[kind, id, escrowOf(account), earningsOf(provider), held, charged, fee, drawn, price]];
    }
    case 'release':
    case 'expire':
      return [plain(entry[0], entry[1], escrowOf(entry[2]), null, entry[3])];
    case 'return':
      return [plain(entry[0], entry[1], entry[2], entry[4], entry[3])];
    case 'transfer':
      return [plain(entry[0], entry[1], entry[2], entry[3], entry[4])];
    default:
      return [];
  }
}

const plain = (
  kind: JournalKind,
  id: string,
  account: string,
  counterparty: string | null,
  amount: string,
): MovementTexts => [kind, id, account, counterparty, amount, '0', '0', '0', null];
