import { createDueWorker, type Database, type DueWorker } from '#store';
import { escrowOf, findTransfer, type MicroUsd } from '#billing';
import { createActRows, type ActRows, type NewAct } from './act-rows.ts';
import { createAttribution, type AttributionOptions, createWallets, type Wallets } from './wallets.ts';
import type { Chain, ChainSetup } from './chain.ts';
import { createChainRows, type ChainBook, type OpenMoney, createSnapshotRows } from './chain-rows.ts';
import { createComparisonAlarm, createTreasury } from './treasury.ts';
import { createDepositRows, type DepositRows } from './deposit-rows.ts';
import { createDeposits, type Deposits, type DepositsOptions } from './deposits.ts';
import { createHandoverCare } from './handover.ts';
import { createFollowUp } from './follow-up.ts';
import { createOpenNetworks, type NetworkAudit, type OpenNetworksOptions } from './open-networks.ts';
import { createTreasuryActs, type TreasuryActs } from './treasury-acts.ts';
import { createWithdrawalRows, type WithdrawalRows } from './withdrawal-rows.ts';
import { createWithdrawals, type Withdrawals } from './withdrawals.ts';

export interface ChainPolicy {
  /** Blocks after which a payment is credited, its own block included. */
  readonly confirmations: number;
  /** The limit for the sum of all credits that the chain may still undo. */
  readonly unfinalMax: MicroUsd;
  readonly withdrawalMin: MicroUsd;
  /** Fee that is deducted from each withdrawal. */
  readonly withdrawalFee: MicroUsd;
  /** Additional fee if the payout opens a token account. */
  readonly tokenAccountFee: MicroUsd;
  /** The limit for one source within a day. */
  readonly withdrawalDailyMax: MicroUsd;
  /** The operator's own addresses to which money of the treasury may be moved. */
  readonly moveTo: readonly string[];
}

export interface ChainsOptions
  extends
    Pick<DepositsOptions, 'ledger' | 'waitMs' | 'namesAnother' | 'onProblem' | 'now'>,
    Pick<AttributionOptions, 'accountOfMemo'>,
    Pick<OpenNetworksOptions, 'onChange'> {
  readonly database: Database;
  readonly chains: readonly (ChainSetup & { readonly policy: ChainPolicy })[];
  /** Interval between two looks at incoming transfers. */
  readonly watchMs: number;
  /** Interval between two comparisons of the books with the treasuries. */
  readonly compareMs: number;
  /** Time without a comparison after which the operator is alerted. */
  readonly compareLateMs: number;
  /** false: no background work, so nothing is paid out. It is for commands that only read the books. Default true. */
  readonly background?: boolean;
  /**
   * The limit for the sum of credits that any chain may still undo, over all wallets without an account of their own.
   */
  readonly strangersMax: MicroUsd;
}

/** Money over chains: deposits, withdrawals, and the comparison of the books with the treasuries. */
export interface Chains {
  /** CAIP-2 ids of all configured chains, also of those that do not answer. The list may grow. */
  readonly networks: readonly string[];
  /** null if the chain is not open yet, or unknown. */
  chain(network: string): Chain | null;
  readonly deposits: Deposits;
  readonly depositRows: Pick<DepositRows, 'find' | 'list' | 'suspense'>;
  readonly withdrawals: Withdrawals;
  readonly withdrawalRows: Pick<WithdrawalRows, 'find' | 'list' | 'listOf'>;
  readonly wallets: Wallets;
  readonly acts: TreasuryActs;
  readonly actRows: Pick<ActRows, 'find' | 'list'>;
  /** Networks whose last comparison with their treasury is too old. */
  late(): readonly string[];
  books(): Promise<readonly ChainBook[]>;
  open(): Promise<readonly OpenMoney[]>;
  /**
   * Compares the books of every chain with its treasury. `reserves` is null if the chain does not report the balance.
   */
  audit(): Promise<readonly NetworkAudit[]>;
  /** Opens further chains, which become active with `commit`. Rejects with Error if one has a wrong setup. */
  prepare(chains: ChainsOptions['chains']): Promise<{ commit(): void }>;
  close(): Promise<void>;
}

const BETWEEN_POLLS_MS = 400;
/** Interval between two checks for late comparisons. */
const ALARM_MS = 60_000;
const CLOSED: ChainPolicy = {
  confirmations: 1,
  unfinalMax: 0n,
  withdrawalMin: 0n,
  withdrawalFee: 0n,
  tokenAccountFee: 0n,
  withdrawalDailyMax: 0n,
  moveTo: [],
};

/**
 * Opens all chains. A chain that cannot be reached is opened later. Rejects with Error if a chain has a wrong setup.
 */
export async function openChains(options: ChainsOptions): Promise<Chains> {
  const { database, ledger, now, onProblem, background = true } = options;
  const ended = new AbortController();
  const policies = new Map(options.chains.map(({ network, policy }) => [network, policy]));
  const policyOf = (network: string) => policies.get(network) ?? CLOSED;
  const ofLedger = { ledger, transferOf: (id: string) => findTransfer(database, id) };
  const depositRows = createDepositRows(database, { now });
  const withdrawalRows = createWithdrawalRows(database, { now });
  const chainRows = createChainRows(database, { now });
  const wallets = createWallets(database, { now });
  const actRows = createActRows(database, { now });
  const acting = { begin: (act: NewAct) => acts.begin(act) };
  const handoverCare = createHandoverCare({ acts: acting, actRows, withdrawalRows, depositRows, now });
  const networks = createOpenNetworks({
    setups: options.chains,
    snapshotsOf: (network) => createSnapshotRows(database, network),
    createTreasury: (chain) =>
      createTreasury({
        chain,
        rows: chainRows,
        ledger,
        deposits,
        withdrawals,
        handoverCare: background ? handoverCare : { ...handoverCare, empty: async () => {} },
        onProblem,
        signal: ended.signal,
      }),
    onChange: options.onChange,
    signal: ended.signal,
  });
  const withdrawals = createWithdrawals({
    rows: withdrawalRows,
    ...ofLedger,
    chainOf: networks.chain,
    policyOf: (network) => payoutPolicy(policyOf(network)),
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
    attribute: createAttribution({
      ledger,
      wallets,
      isArrival: (...event) => acts.isArrival(...event),
      accountOfMemo: options.accountOfMemo,
    }),
    signal: ended.signal,
  });
  const acts = createTreasuryActs({
    rows: actRows,
    ...ofLedger,
    withdrawals,
    withdrawalRows,
    deposits,
    depositRows,
    chainOf: networks.chain,
    compare: networks.compareNow,
    moveToOf: (network) => policyOf(network).moveTo,
    onProblem,
  });

  const names = [...policies.keys()];
  const alarm = createComparisonAlarm({
    networks: names,
    books: chainRows.list,
    lateMs: options.compareLateMs,
    onProblem,
    now,
  });

  await networks.open();
  const workers: DueWorker[] = [];
  const carried = new Set<string>();
  const onError = (error: unknown, failures: number) => {
    if (failures === 1) onProblem('warn', 'processing the money on chains fails; the gateway keeps trying', { error });
  };
  const followUp = { pauseMs: BETWEEN_POLLS_MS, onProblem, onError, now };
  const every = (pauseMs: number, turn: () => Promise<void>) => createDueWorker({ turn, pauseMs, onError });
  const begin = (added: readonly DueWorker[]) => {
    workers.push(...added);
    for (const worker of added) worker.wake();
  };
  const lookAt = (network: string) =>
    begin([
      every(options.watchMs, () => networks.watch(network)),
      every(options.compareMs, () => networks.compare(network).finally(() => acts.carryOnDifference(network))),
    ]);
  const carryOn = (network: string) => {
    if (carried.has(network)) return;
    carried.add(network);
    begin([
      createFollowUp({ ...followUp, network, rows: depositRows, carryOn: deposits.carryOn }),
      createFollowUp({ ...followUp, network, rows: withdrawalRows, carryOn: withdrawals.carryOn }),
    ]);
  };
  if (background) {
    // The rows of a removed chain are included: the steps that need only the ledger still go on.
    const known = (await chainRows.list()).map(({ network }) => network);
    // No other process can have the embedded database open, so its claims are from a process that died.
    if (database.engine === 'sqlite') await Promise.all([depositRows.forgetClaims(), withdrawalRows.forgetClaims()]);
    for (const network of names) lookAt(network);
    for (const network of [...names, ...known]) carryOn(network);
    begin([every(options.watchMs, acts.carryOn), every(Math.min(options.compareLateMs, ALARM_MS), alarm.check)]);
  }

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
            if (background) {
              lookAt(network);
              carryOn(network);
            }
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
    acts,
    actRows,
    late: alarm.late,
    books: chainRows.list,
    open: chainRows.open,
    audit: networks.audit,
    async close() {
      ended.abort();
      const stopped = Promise.all(workers.map((worker) => worker.close()));
      // Closed first, so that no hanging node delays the end. The outcome of open requests is unknown, as always.
      networks.close();
      await stopped;
      // A chain may have been opened meanwhile.
      networks.close();
    },
  };
}

const payoutPolicy = ({ withdrawalMin, withdrawalDailyMax, withdrawalFee, tokenAccountFee }: ChainPolicy) => ({
  minimum: withdrawalMin,
  dailyMax: withdrawalDailyMax,
  fee: withdrawalFee,
  tokenAccountFee,
});
