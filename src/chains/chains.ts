import { createDueWorker, type Database, type DueWorker } from '#store';
import { escrowOf, findTransfer, type MicroUsd } from '#billing';
import { createActRows, type ActRows, type NewAct } from './act-rows.ts';
import { createAttribution, type AttributionOptions } from './attribution.ts';
import type { Chain, ChainSetup } from './chain.ts';
import { createChainRows, type ChainBook, type ChainRows, type OpenMoney } from './chain-rows.ts';
import { createComparisonAlarm, type ComparisonAlarm } from './comparison-alarm.ts';
import { createDepositRows, type DepositRows } from './deposit-rows.ts';
import { createDeposits, type Deposits, type DepositsOptions } from './deposits.ts';
import { createHandoverCare } from './handover-care.ts';
import { createLookAfter } from './look-after.ts';
import { createOpenNetworks, type NetworkAudit, type OpenNetworks, type OpenNetworksOptions } from './open-networks.ts';
import { createSnapshotRows } from './snapshot-rows.ts';
import { createTreasury } from './treasury.ts';
import { createTreasuryActs, type TreasuryActs } from './treasury-acts.ts';
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
  /** Kept of each withdrawal. */
  readonly withdrawalFee: MicroUsd;
  /** Kept beside it of each withdrawal whose payout opens a token account. */
  readonly tokenAccountFee: MicroUsd;
  /** Of one source within a day. */
  readonly withdrawalDailyMax: MicroUsd;
  /** Addresses of the operator's own that the money of the treasury may be moved to. */
  readonly moveTo: readonly string[];
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
  /** Without a comparison for so long somebody has to look. */
  readonly compareLateMs: number;
  /** false: nothing goes on by itself, for who only looks at the books; nothing is paid out then. Default true. */
  readonly background?: boolean;
  /** The most that wallets without an account of their own are credited in all while any chain may still undo it. */
  readonly strangersMax: MicroUsd;
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
  readonly withdrawalRows: Pick<WithdrawalRows, 'find' | 'list' | 'listOf'>;
  readonly wallets: Wallets;
  readonly acts: TreasuryActs;
  readonly actRows: Pick<ActRows, 'find' | 'list'>;
  /** Networks whose books were not compared with their treasury for too long. */
  late(): readonly string[];
  books(): Promise<readonly ChainBook[]>;
  open(): Promise<readonly OpenMoney[]>;
  /** Compares the books of every chain with its treasury. `reserves` null where the chain does not tell. */
  audit(): Promise<readonly NetworkAudit[]>;
  /** Further chains, which count once `commit` is called. Rejects with Error where one is set up wrongly. */
  prepare(chains: ChainsOptions['chains']): Promise<{ commit(): void }>;
  close(): Promise<void>;
}

const BETWEEN_LOOKS_MS = 400;
/** Between two looks whether comparisons are late. */
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

/** Opens all chains. One that cannot be reached is opened later; one that is set up wrongly rejects with Error. */
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
  const acting = { begin: (asked: NewAct) => acts.begin(asked) };
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
  const workers = createWorkers({
    ...options,
    networks,
    deposits,
    withdrawals,
    depositRows,
    withdrawalRows,
    chainRows,
    acts,
    alarm,
  });
  if (background) await workers.start(names);

  return {
    networks: names,
    prepare: preparer(networks, (network, policy) => {
      policies.set(network, policy);
      names.push(network);
      if (background) workers.add(network);
    }),
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
      const stopped = workers.close();
      // No node that hangs is waited for: what was asked of it may or may not have happened, as ever.
      networks.close();
      await stopped;
      // One may have been opened meanwhile.
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

/** `added` gets each network that counts from now on. */
function preparer(
  networks: Pick<OpenNetworks, 'prepare'>,
  added: (network: string, policy: ChainPolicy) => void,
): Chains['prepare'] {
  return async (more) => {
    const prepared = await networks.prepare(more);
    return {
      commit() {
        prepared.commit();
        for (const { network, policy } of more) added(network, policy);
      },
    };
  };
}

interface WorkersOptions extends ChainsOptions {
  readonly networks: Pick<OpenNetworks, 'watch' | 'compare'>;
  readonly deposits: Pick<Deposits, 'carryOn'>;
  readonly withdrawals: Pick<Withdrawals, 'carryOn'>;
  readonly depositRows: DepositRows;
  readonly withdrawalRows: WithdrawalRows;
  readonly chainRows: Pick<ChainRows, 'list'>;
  readonly acts: Pick<TreasuryActs, 'carryOn' | 'carryOnDifference'>;
  readonly alarm: Pick<ComparisonAlarm, 'check'>;
}

/** All that goes on by itself. */
interface Workers {
  /** Looks at the networks, and carries on with the rows of all that were ever set up. */
  start(networks: readonly string[]): Promise<void>;
  /** Looks at one more network. */
  add(network: string): void;
  close(): Promise<unknown>;
}

function createWorkers(options: WorkersOptions): Workers {
  const { database, networks, deposits, withdrawals, depositRows, withdrawalRows, chainRows, acts, alarm } = options;
  const { onProblem, now } = options;
  const workers: DueWorker[] = [];
  const carried = new Set<string>();
  const onError = (error: unknown, failures: number) => {
    if (failures === 1)
      onProblem('warn', 'looking after money on chains fails; it is tried again and again', { error });
  };
  const lookAfter = { pauseMs: BETWEEN_LOOKS_MS, onProblem, onError, now };
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
      createLookAfter({ ...lookAfter, network, rows: depositRows, carryOn: deposits.carryOn }),
      createLookAfter({ ...lookAfter, network, rows: withdrawalRows, carryOn: withdrawals.carryOn }),
    ]);
  };

  return {
    async start(setUp) {
      // Also the rows of a chain that is no longer set up: what of them needs the ledger alone goes on.
      const known = (await chainRows.list()).map(({ network }) => network);
      // Nobody else can have the embedded database open: its claims are those of a process that died.
      if (database.engine === 'sqlite') await Promise.all([depositRows.forgetClaims(), withdrawalRows.forgetClaims()]);
      for (const network of setUp) lookAt(network);
      for (const network of [...setUp, ...known]) carryOn(network);
      begin([every(options.watchMs, acts.carryOn), every(Math.min(options.compareLateMs, ALARM_MS), alarm.check)]);
    },
    add(network) {
      lookAt(network);
      carryOn(network);
    },
    close: () => Promise.all(workers.map((worker) => worker.close())),
  };
}
