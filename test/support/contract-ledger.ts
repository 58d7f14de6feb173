import { audit, createLedger, type Ledger } from '#billing';
import { ENGINES, openEngine } from './engines.ts';
import { createOracleLedger } from './oracle-ledger.ts';

/** Whoever must keep what the interface's documentation promises: both engines, and the model that judges them. */
export const CONTRACT_LEDGERS = [...ENGINES, 'oracle'] as const;

export interface ContractLedger {
  readonly ledger: Ledger;
  /** Names of the checks of its books that fail. */
  failing(): Promise<readonly string[]>;
  dispose(): Promise<void>;
}

export async function openContractLedger(
  name: (typeof CONTRACT_LEDGERS)[number],
  now: () => number,
): Promise<ContractLedger> {
  if (name === 'oracle') {
    const oracle = createOracleLedger(now);
    return {
      ledger: oracle,
      failing: async () => {
        oracle.check();
        return [];
      },
      dispose: () => oracle.close(),
    };
  }
  const engine = await openEngine(name);
  const ledger = await createLedger({ database: engine.database, now });
  return {
    ledger,
    // Charges are judged by price versions, of which these tests have none.
    failing: async () =>
      (await audit(engine.database, { overdueMs: null })).checks
        .filter((check) => !check.ok && check.name !== 'charges')
        .map((check) => check.name),
    async dispose() {
      await ledger.close();
      await engine.dispose();
    },
  };
}
