import { FEES, SUSPENSE, treasuryOf, type Ledger, OPERATOR_TREASURY } from '#billing';
import type { MicroUsd } from '#billing/amounts';
import { LOSSES, TRANSIT, type ChainBook, type Chains, type OpenMoney } from '#chains';

/** One chain's treasury compared with the books. Amounts are micro-USD. */
export interface AuditedChain {
  readonly network: string;
  readonly treasury: string | null;
  /** null if they could not be compared. */
  readonly ok: boolean | null;
  readonly held: MicroUsd | null;
  readonly booked: MicroUsd | null;
  readonly difference: MicroUsd | null;
  /** The block or slot of the comparison. */
  readonly height: bigint | null;
  /** Epoch milliseconds. null before the first comparison. */
  readonly comparedAt: number | null;
  /** The treasury's balance in the ledger now. Unlike `booked` it includes transactions that may still be undone. */
  readonly owed: MicroUsd;
  readonly open: Readonly<Record<OpenMoney['kind'], number>>;
  /** The reason why nothing is paid out. null if payouts run. */
  readonly halted: string | null;
  /** The reason why it could not be compared. */
  readonly error: string | null;
}

export interface ChainAudit {
  /** false: a chain differs or is halted. null: no chain differs, but one could not be compared. */
  readonly ok: boolean | null;
  readonly chains: readonly AuditedChain[];
  /** Balances of the ledger's suspense and fee accounts. */
  readonly suspense: MicroUsd;
  readonly fees: MicroUsd;
  /** Lost money that the operator still has to cover. */
  readonly losses: MicroUsd;
  /** Money on its way between treasuries. */
  readonly transit: MicroUsd;
  /** Money that the operator credited by hand and holds outside of the chains. */
  readonly operator: MicroUsd;
}

const NOT_SET_UP = 'the configuration does not have this chain, and its treasury holds money by the books';

/**
 * Compares the books with the treasuries now. `funds` is null in a configuration without chains. `listBooks` lists the
 * books of all chains that were ever set up. If such a treasury still holds money by the books, and its chain is not in
 * the configuration, it could not be compared.
 */
export async function auditFunds(
  funds: { readonly chains: Pick<Chains, 'audit' | 'open'> } | null,
  ledger: Pick<Ledger, 'balance'>,
  listBooks: () => Promise<readonly ChainBook[]>,
): Promise<ChainAudit> {
  const balance = async (account: string) => (await ledger.balance(account))?.available ?? 0n;
  const networks = funds === null ? [] : await funds.chains.audit();
  const books = new Map((await listBooks()).map((book) => [book.network, book]));
  const open = (await funds?.chains.open()) ?? [];
  const others: Awaited<ReturnType<Chains['audit']>>[number][] = [];
  for (const network of books.keys())
    if (networks.every((one) => one.network !== network) && (await balance(treasuryOf(network))) !== 0n)
      others.push({ network, reserves: null, error: new Error(NOT_SET_UP) });
  const chains = await Promise.all(
    [...networks, ...others].map(async ({ network, reserves, error }): Promise<AuditedChain> => {
      const book = books.get(network);
      const halted = book?.halted ?? null;
      const count = (kind: OpenMoney['kind']) =>
        open.find((one) => one.network === network && one.kind === kind)?.count ?? 0;
      return {
        network,
        treasury: book?.treasury ?? null,
        ok: halted !== null ? false : reserves === null ? null : reserves.held === reserves.booked,
        held: reserves?.held ?? null,
        booked: reserves?.booked ?? null,
        difference: reserves === null ? null : reserves.held - reserves.booked,
        height: reserves?.height ?? null,
        comparedAt: book?.comparedAt ?? null,
        owed: -(await balance(treasuryOf(network))),
        open: { deposits: count('deposits'), unfinal: count('unfinal'), withdrawals: count('withdrawals') },
        halted,
        error:
          reserves !== null
            ? null
            : error instanceof Error
              ? error.message
              : 'the chain did not return the balance of the treasury at a final block',
      };
    }),
  );
  const [suspense, fees, losses, transit, operator] = await Promise.all([
    balance(SUSPENSE),
    balance(FEES),
    balance(LOSSES),
    balance(TRANSIT),
    balance(OPERATOR_TREASURY),
  ]);
  const ok = chains.some((chain) => chain.ok === false)
    ? false
    : chains.some((chain) => chain.ok === null)
      ? null
      : true;
  return { ok, chains, suspense, fees, losses: -losses, transit: -transit, operator: -operator };
}
