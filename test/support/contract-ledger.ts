import { audit, createLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { ENGINES, openEngine } from './engines.ts';
import { createOracleLedger } from './oracle-ledger.ts';

/**
 * The ledgers that must fulfil the interface's documentation: both engines, and the model with which they are compared.
 */
export const CONTRACT_LEDGERS = [...ENGINES, 'oracle'] as const;

export interface ContractLedger {
  readonly ledger: Ledger;
  /** Names of the audit checks that fail. */
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
    // The check `charges` uses price versions, and these tests have none of them.
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
