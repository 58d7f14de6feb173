import { createDueWorker, type Database, type DueWorker } from '#store';
import { escrowOf, type MicroUsd } from '#billing';
import { createAttribution, type AttributionOptions } from './attribution.ts';
import type { Chain, ChainSetup } from './chain.ts';
import { createChainRows, type ChainBook, type OpenMoney } from './chain-rows.ts';
import { createDepositRows, type DepositRows } from './deposit-rows.ts';
import { createDeposits, type Deposits, type DepositsOptions } from './deposits.ts';
import { createLookAfter } from './look-after.ts';
import { createOpenNetworks, type NetworkAudit, type OpenNetworksOptions } from './open-networks.ts';
import { createTreasury } from './treasury.ts';
import { createWallets, type Wallets } from './wallets.ts';
import { createWithdrawalRows, type WithdrawalRows } from './withdrawal-rows.ts';
import { createWithdrawals, type Withdrawals } from './withdrawals.ts';

/** The rules of one chain. */
export interface ChainPolicy {
  /** Blocks after which a payment is credited, its own included. */
  readonly confirmations: number;
  /** The most that is credited in all while the chain may still undo it. */
  readonly unfinalMax: MicroUsd;
  readonly withdrawalMin: MicroUsd;
  /** Of one source within a day. */
  readonly withdrawalDailyMax: MicroUsd;
}

export interface ChainsOptions
  extends
    Pick<DepositsOptions, 'ledger' | 'waitMs' | 'namesAnother' | 'onProblem' | 'now'>,
    Pick<AttributionOptions, 'accountOfMemo'>,
    Pick<OpenNetworksOptions, 'onChange'> {
  readonly database: Database;
  readonly chains: readonly (ChainSetup & { readonly policy: ChainPolicy })[];
  /** Between two looks at what came in. */
  readonly watchMs: number;
  /** Between two comparisons of the books with the treasuries. */
  readonly compareMs: number;
  /** false: nothing goes on by itself, for who only looks at the books; nothing is paid out then. Default true. */
  readonly background?: boolean;
}

/** Money over chains: what comes in, what goes out, and that the books say what is there. */
export interface Chains {
  /** CAIP-2 ids of all that are set up, whether or not they answer. The list may grow. */
  readonly networks: readonly string[];
  /** null where it is not open yet, or unknown. */
  chain(network: string): Chain | null;
  readonly deposits: Deposits;
  readonly depositRows: Pick<DepositRows, 'find' | 'list' | 'suspense'>;
  readonly withdrawals: Withdrawals;
  readonly withdrawalRows: Pick<WithdrawalRows, 'find' | 'list'>;
  readonly wallets: Wallets;
  books(): Promise<readonly ChainBook[]>;
  open(): Promise<readonly OpenMoney[]>;
  /** Compares the books of every chain with its treasury. `reserves` null where the chain does not tell. */
  audit(): Promise<readonly NetworkAudit[]>;
  /** Further chains, which count once `commit` is called. Rejects with Error where one is set up wrongly. */
  prepare(chains: ChainsOptions['chains']): Promise<{ commit(): void }>;
  close(): Promise<void>;
}

const BETWEEN_LOOKS_MS = 400;
const CLOSED: ChainPolicy = { confirmations: 1, unfinalMax: 0n, withdrawalMin: 0n, withdrawalDailyMax: 0n };

/** Opens all chains. One that cannot be reached is opened later; one that is set up wrongly rejects with Error. */
export async function openChains(options: ChainsOptions): Promise<Chains> {
  const { database, ledger, now, onProblem, background = true } = options;
  const ended = new AbortController();
  const { signal } = ended;
  const policies = new Map(options.chains.map(({ network, policy }) => [network, policy]));
  const policyOf = (network: string) => policies.get(network) ?? CLOSED;

  const depositRows = createDepositRows(database, { now });
  const withdrawalRows = createWithdrawalRows(database, { now });
  const chainRows = createChainRows(database, { now });
  const wallets = createWallets(database, { now });
  const networks = createOpenNetworks({
    setups: options.chains,
    createTreasury: (chain) =>
      createTreasury({ chain, rows: chainRows, ledger, deposits, withdrawals, onProblem, signal }),
    onChange: options.onChange,
    signal,
  });
  const withdrawals = createWithdrawals({
    rows: withdrawalRows,
    ledger,
    chainOf: networks.chain,
    policyOf: (network) => ({
      minimum: policyOf(network).withdrawalMin,
      dailyMax: policyOf(network).withdrawalDailyMax,
    }),
    haltOf: async (network) => (await chainRows.find(network))?.halted ?? null,
    unfinal: depositRows.unfinal,
    paidIn: depositRows.paidIn,
    now,
  });
  const deposits = createDeposits({
    ...options,
    rows: depositRows,
    chainOf: networks.chain,
    policyOf,
    recall: (account, reason) => withdrawals.recall(escrowOf(account), reason),
    attribute: createAttribution({ ledger, wallets, accountOfMemo: options.accountOfMemo }),
    signal,
  });

  await networks.open();
  const workers: DueWorker[] = [];
  const onError = (error: unknown, failures: number) => {
    if (failures === 1)
      onProblem('warn', 'looking after money on chains fails; it is tried again and again', { error });
  };
  const lookAfter = { pauseMs: BETWEEN_LOOKS_MS, onProblem, onError, now };
  const every = (pauseMs: number, turn: () => Promise<void>) => createDueWorker({ turn, pauseMs, onError });
  const lookAt = (network: string) => [
    every(options.watchMs, () => networks.watch(network)),
    every(options.compareMs, () => networks.compare(network)),
  ];
  const carryOn = (network: string) => [
    createLookAfter({ ...lookAfter, network, rows: depositRows, carryOn: deposits.carryOn }),
    createLookAfter({ ...lookAfter, network, rows: withdrawalRows, carryOn: withdrawals.carryOn }),
  ];
  const carried = new Set<string>();
  if (background) {
    // Also the rows of a chain that is no longer set up: what of them needs the ledger alone goes on.
    const known = new Set([...policies.keys(), ...(await chainRows.list()).map(({ network }) => network)]);
    // Nobody else can have the embedded database open: its claims are those of a process that died.
    if (database.engine === 'sqlite') await Promise.all([depositRows.forgetClaims(), withdrawalRows.forgetClaims()]);
    for (const network of policies.keys()) workers.push(...lookAt(network));
    for (const network of known) workers.push(...carryOn(network));
    for (const worker of workers) worker.wake();
    for (const network of known) carried.add(network);
  }
  const names = [...policies.keys()];

  return {
    networks: names,
    async prepare(more) {
      const prepared = await networks.prepare(more);
      return {
        commit() {
          prepared.commit();
          for (const { network, policy } of more) {
            policies.set(network, policy);
            names.push(network);
            if (!background) continue;
            // Rows of a chain that was set up before are looked after already.
            const added = [...lookAt(network), ...(carried.has(network) ? [] : carryOn(network))];
            carried.add(network);
            workers.push(...added);
            for (const worker of added) worker.wake();
          }
        },
      };
    },
    chain: networks.chain,
    deposits,
    depositRows,
    withdrawals,
    withdrawalRows,
    wallets,
    books: chainRows.list,
    open: chainRows.open,
    audit: networks.audit,
    async close() {
      ended.abort();
      const stopped = workers.map((worker) => worker.close());
      // No node that hangs is waited for: what was asked of it may or may not have happened, as ever.
      networks.close();
      await Promise.all(stopped);
      // One may have been opened meanwhile.
      networks.close();
    },
  };
}
