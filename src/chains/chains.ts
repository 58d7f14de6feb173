import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '#store';
import { escrowOf, type Ledger, type MicroUsd } from '#billing';
import { ChainUnavailable, type Chain, type ChainSetup, type Incoming } from './chain.ts';
import { createChainRows, type ChainBook, type OpenMoney } from './chain-rows.ts';
import { createDepositRows, type DepositRows } from './deposit-rows.ts';
import { createDeposits, type Deposits, type ProblemLevel } from './deposits.ts';
import { createLookAfter, type LookAfter } from './look-after.ts';
import { createTreasury, type Reserves, type Treasury } from './treasury.ts';
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

export interface ChainsOptions {
  readonly database: Database;
  readonly ledger: Pick<Ledger, 'transfer' | 'balance'>;
  readonly chains: readonly (ChainSetup & { readonly policy: ChainPolicy })[];
  /** How long the bringer of a payment waits for it to be credited. */
  readonly waitMs: number;
  /** Between two looks at what came in. */
  readonly watchMs: number;
  /** Between two comparisons of the books with the treasuries. */
  readonly compareMs: number;
  /** false: nothing goes on by itself, for who only looks at the books; nothing is paid out then. Default true. */
  readonly background?: boolean;
  /** The account that a memo names, where there is one. */
  readonly accountOfMemo: (memo: string) => Promise<string | null>;
  /** Whether a memo has the name of another account than this one, be it known or not. */
  readonly namesAnother: (memo: string, account: string) => boolean;
  /** Told of what somebody should look at. */
  readonly onProblem: (level: ProblemLevel, problem: string, of: Readonly<Record<string, unknown>>) => void;
  /** A chain answers, or not any more; `error` says why. */
  readonly onChange: (network: string, answers: boolean, error: unknown) => void;
  readonly now: () => number;
}

/** Money over chains: what comes in, what goes out, and that the books say what is there. */
export interface Chains {
  /** CAIP-2 ids of all that are set up, whether or not they answer. */
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
  audit(): Promise<
    readonly { readonly network: string; readonly reserves: Reserves | null; readonly error: unknown }[]
  >;
  close(): Promise<void>;
}

const CLAIM_MS = 30_000;
const BETWEEN_LOOKS_MS = 400;

/** Opens all chains. One that cannot be reached is opened later; one that is set up wrongly rejects with Error. */
export async function openChains(options: ChainsOptions): Promise<Chains> {
  const { database, ledger, now, onProblem } = options;
  const ended = new AbortController();
  const { signal } = ended;
  const setups = new Map(options.chains.map((setup) => [setup.network, setup]));
  const opened = new Map<string, { readonly chain: Chain; readonly treasury: Treasury }>();
  const chainOf = (network: string) => opened.get(network)?.chain ?? null;
  const policyOf = (network: string) => setups.get(network)?.policy ?? CLOSED;

  const depositRows = createDepositRows(database, { now });
  const withdrawalRows = createWithdrawalRows(database, { now });
  const chainRows = createChainRows(database, { now });
  const wallets = createWallets(database, { now });

  const withdrawals = createWithdrawals({
    rows: withdrawalRows,
    ledger,
    chainOf,
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
    rows: depositRows,
    ledger,
    chainOf,
    policyOf,
    waitMs: options.waitMs,
    recall: (account, reason) => withdrawals.recall(escrowOf(account), reason),
    namesAnother: options.namesAnother,
    attribute: (event, network) => attribute(event, network),
    onProblem,
    now,
    signal,
  });

  /**
   * The account that the memo names, that the sending wallet is bound to, or that it is itself where it was ever
   * used. An address that was used as an ordinary wallet and as a contract is whose signature says so: anybody can
   * make an account of any name, by sending something to it.
   */
  const attribute = async ({ memo, sender }: Incoming, network: string): Promise<string | null> => {
    const named = memo === null ? null : await options.accountOfMemo(memo);
    if (named !== null) return named;
    const wallet = `${network.slice(0, network.indexOf(':'))}:${network.startsWith('eip155:') ? sender.toLowerCase() : sender}`;
    const bound = await wallets.find(wallet);
    if (bound !== null) return bound.account;
    const used: string[] = [];
    for (const account of network.startsWith('eip155:') ? [wallet, `${network}:${sender.toLowerCase()}`] : [wallet]) {
      if ((await ledger.balance(escrowOf(account))) !== null) used.push(account);
    }
    return used.length === 1 ? used[0]! : null;
  };

  const openOne = async (setup: ChainSetup): Promise<void> => {
    const { createChain } = setup.network.startsWith('eip155:') ? await evm() : await solana();
    const chain = createChain(setup);
    try {
      await chain.open();
      const treasury = createTreasury({ chain, rows: chainRows, ledger, deposits, withdrawals, onProblem, signal });
      await treasury.open();
      opened.set(setup.network, { chain, treasury });
    } catch (error) {
      chain.close();
      throw error;
    }
  };

  /** What goes on in the background, each by itself, until the end. */
  const loops: Promise<void>[] = [];
  const loop = (betweenMs: number, work: () => Promise<void>) => {
    if (options.background === false) return;
    const run = async () => {
      let failing = false;
      while (!signal.aborted) {
        try {
          await work();
          failing = false;
        } catch (error) {
          if (!signal.aborted && !failing)
            onProblem('warn', 'looking after money on chains fails; it is tried again and again', { error });
          failing = true;
        }
        await pause(betweenMs, undefined, { signal, ref: false }).catch(() => {});
      }
    };
    loops.push(run());
  };
  const answering = new Map<string, boolean>();
  /** Says once that a chain does not answer, and once that it does again. */
  const asking = async (network: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
      if (answering.get(network) === false) options.onChange(network, true, null);
      answering.set(network, true);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ChainUnavailable)) throw error;
      if (answering.get(network) !== false) options.onChange(network, false, error);
      answering.set(network, false);
    }
  };

  const openings = await Promise.allSettled(options.chains.map(openOne));
  for (const [index, opening] of openings.entries()) {
    if (opening.status === 'fulfilled') continue;
    const reason: unknown = opening.reason;
    if (!(reason instanceof ChainUnavailable)) {
      for (const { chain } of opened.values()) chain.close();
      throw reason;
    }
    const { network } = options.chains[index]!;
    answering.set(network, false);
    options.onChange(network, false, reason);
  }
  for (const setup of options.chains) {
    const { network } = setup;
    loop(options.watchMs, () =>
      asking(network, async () => {
        if (!opened.has(network)) await openOne(setup);
        await opened.get(network)!.treasury.watch();
      }),
    );
    loop(options.compareMs, async () => {
      const { treasury } = opened.get(network) ?? {};
      if (treasury) await asking(network, treasury.compare);
    });
  }
  /** Each chain by itself, also one that is no longer set up: what of it needs the ledger alone goes on. */
  const everyNetwork = new Set([...setups.keys(), ...(await chainRows.list()).map(({ network }) => network)]);
  const looks: LookAfter[] = [];
  for (const network of everyNetwork) {
    const [comes, goes] = [depositRows, withdrawalRows];
    looks.push(
      createLookAfter({
        claim: (limit) => comes.claim(network, limit, CLAIM_MS),
        carryOn: deposits.carryOn,
        schedule: comes.schedule,
        onProblem,
        now,
      }),
      createLookAfter({
        claim: (limit) => goes.claim(network, limit, CLAIM_MS),
        carryOn: withdrawals.carryOn,
        schedule: goes.schedule,
        onProblem,
        now,
      }),
    );
  }
  // Nobody else can have the embedded database open: what is claimed was by a process that died.
  if (database.engine === 'sqlite' && options.background !== false)
    await Promise.all([depositRows.forgetClaims(), withdrawalRows.forgetClaims()]);
  for (const { begin } of looks) loop(BETWEEN_LOOKS_MS, begin);
  return {
    networks: [...setups.keys()],
    chain: chainOf,
    deposits,
    depositRows,
    withdrawals,
    withdrawalRows,
    wallets,
    books: chainRows.list,
    open: chainRows.open,
    audit: () =>
      Promise.all(
        [...setups.keys()].map(async (network) => {
          const treasury = opened.get(network)?.treasury;
          if (!treasury) return { network, reserves: null, error: new ChainUnavailable(`${network} does not answer`) };
          try {
            return { network, reserves: await treasury.compare(), error: null };
          } catch (error) {
            return { network, reserves: null, error };
          }
        }),
      ),
    async close() {
      ended.abort();
      // No node that hangs is waited for: what was asked of it may or may not have happened, as ever.
      for (const { chain } of opened.values()) chain.close();
      await Promise.all(loops);
      await Promise.all(looks.map(({ done }) => done()));
      // One may have been opened meanwhile.
      for (const { chain } of opened.values()) chain.close();
    },
  };
}

/** Each family brings libraries that take long to load: only those are that are set up. */
const evm = async () => ({ createChain: (await import('./evm/evm-chain.ts')).createEvmChain });
const solana = async () => ({ createChain: (await import('./solana/solana-chain.ts')).createSolanaChain });

const CLOSED: ChainPolicy = { confirmations: 1, unfinalMax: 0n, withdrawalMin: 0n, withdrawalDailyMax: 0n };
