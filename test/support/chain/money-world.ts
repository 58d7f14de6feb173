import { expect } from 'vitest';
import type { Database, OpenDatabase } from '#store';
import { audit, createLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { MICRO_USD_MAX, type MicroUsd } from '#billing/amounts';
import type { Chains, PaymentPayload, SignedPayment } from '#chains';
import type { ChainSetup } from '../../../src/billing/chains/chain.ts';
import { createChainRows } from '../../../src/billing/chains/chain-rows.ts';
import { openChains, type ChainPolicy } from '../../../src/billing/chains/chains.ts';
import { adHoc } from '../ad-hoc.ts';
import { openEngine, type EngineName } from '../engines.ts';
import { evmMoney, type EvmMoney, type MoneyChain, type Payer } from './money-chain.ts';
import { whileBlocksCome } from './while-blocks-come.ts';

export type { Payer } from './money-chain.ts';

const POLICY: ChainPolicy = {
  confirmations: 1,
  unfinalMax: 10_000_000_000n,
  withdrawalMin: 1n,
  withdrawalFee: 0n,
  tokenAccountFee: 0n,
  withdrawalDailyMax: 10_000_000_000n,
  moveTo: [],
};

/** A chain with a token and a treasury, and books in a database. Tests open one or several gateways on it. */
export interface MoneyWorld<C extends MoneyChain = MoneyChain> {
  readonly chain: C;
  readonly network: string;
  readonly treasury: string;
  /** Addresses whose balances are compared with the books. */
  treasuries: readonly string[];
  readonly database: OpenDatabase;
  /** Opens another connection to the same database. Only for PostgreSQL. */
  again(): Promise<OpenDatabase>;
  payer(usdc?: MicroUsd): Promise<Payer>;
  gateway(options?: GatewayOptions): Promise<MoneyGateway>;
  /** The USDC balance on the chain. */
  balanceOf(address: string): Promise<MicroUsd>;
  /** Makes blocks, so that earlier transactions become final. */
  finalize(): Promise<void>;
  /** Rows of the money tables that are not completed. */
  unfinished(): Promise<readonly string[]>;
  /**
   * Runs a gateway and makes blocks until nothing is open. Then checks the books and compares them with the treasury.
   */
  settle(gateway?: MoneyGateway): Promise<void>;
  /** The available balance of a ledger account. */
  available(account: string): Promise<MicroUsd>;
  close(): Promise<void>;
}

export interface GatewayOptions {
  /** URL of a proxy before the node. */
  readonly rpcUrl?: string;
  readonly facilitator?: 'in-process' | URL;
  readonly policy?: Partial<ChainPolicy>;
  readonly opensAccounts?: boolean;
  /** Uses another treasury than the chain's, and its predecessor. */
  readonly keys?: Pick<ChainSetup, 'treasuryKey' | 'previousKey'>;
  readonly finality?: number;
  readonly database?: OpenDatabase;
  readonly waitMs?: number;
  readonly strangersMax?: MicroUsd;
  /** false: no background work runs. */
  readonly background?: boolean;
  readonly timeoutMs?: number;
  /** Milliseconds to add to the clock, so that work that others have claimed is due again. */
  readonly aheadMs?: number;
  /** A wrapper between the money code and the database or the ledger. */
  readonly through?: Through;
}

export interface Through {
  database(real: Database): Database;
  ledger(real: Ledger): Pick<Ledger, 'transfer' | 'balance'>;
}

export interface MoneyGateway {
  readonly chains: Chains;
  readonly ledger: Ledger;
  /** Reported problems for the operator. */
  readonly problems: readonly string[];
  /** Makes a payment for the terms of this gateway, signed by a wallet. */
  sign(payer: Payer, amount: MicroUsd): Promise<{ readonly payload: PaymentPayload; readonly payment: SignedPayment }>;
  close(): Promise<void>;
}

const OPEN = [
  adHoc(
    "SELECT 'deposit ' || id || ' ' || state AS row FROM deposits WHERE state NOT IN ('final', 'failed', 'reversed') OR next_look_at IS NOT NULL",
  ),
  adHoc(
    "SELECT 'withdrawal ' || id || ' ' || state AS row FROM withdrawals WHERE state NOT IN ('paid', 'returned', 'refused')",
  ),
  adHoc("SELECT 'act ' || id || ' ' || state AS row FROM treasury_acts WHERE state NOT IN ('done', 'refused')"),
];

/** Opens a world on an EVM chain. */
export async function openMoneyWorld(
  engine: EngineName = 'sqlite',
  options: Parameters<typeof evmMoney>[0] = {},
): Promise<MoneyWorld<EvmMoney>> {
  return openMoneyWorldOn(await evmMoney(options), engine);
}

export async function openMoneyWorldOn<C extends MoneyChain>(
  chain: C,
  engine: EngineName = 'sqlite',
): Promise<MoneyWorld<C>> {
  const opened = await openEngine(engine);
  const { network, treasury } = chain;
  const gateways = new Set<MoneyGateway>();

  const world: MoneyWorld<C> = {
    chain,
    network,
    treasury,
    treasuries: [treasury],
    database: opened.database,
    again: opened.again,
    balanceOf: chain.balanceOf,
    payer: (usdc = 100_000_000n) => chain.payer(usdc),

    async gateway({
      rpcUrl = chain.url,
      facilitator = 'in-process',
      policy,
      opensAccounts = false,
      keys = {},
      strangersMax = MICRO_USD_MAX,
      background = true,
      finality = null,
      database = opened.database,
      waitMs = 4_000,
      timeoutMs = 5_000,
      aheadMs = 0,
      through,
    } = {}) {
      const problems: string[] = [];
      const now = () => Date.now() + aheadMs;
      const ledger = await createLedger({ database, now });
      const chains = await openChains({
        database: through?.database(database) ?? database,
        ledger: through?.ledger(ledger) ?? ledger,
        chains: [
          {
            ...chain.setup,
            ...keys,
            rpcUrl,
            facilitator,
            finality,
            opensAccounts,
            timeoutMs,
            now,
            policy: { ...POLICY, ...policy },
          },
        ],
        waitMs,
        background,
        watchMs: 200,
        compareMs: 3_600_000,
        compareLateMs: 3_600_000,
        strangersMax,
        accountOfMemo: async (memo) => (memo.startsWith('tollgate:local:') ? memo : null),
        namesAnother: (memo, account) => memo.startsWith('tollgate:local:') && memo !== account,
        onProblem: (_level, problem, of) => problems.push(`${problem} ${String(of['error'] ?? of['reason'] ?? '')}`),
        onChange: (_network, answers, error) => void (answers || problems.push(String(error))),
        now,
      });
      const gateway: MoneyGateway = {
        chains,
        ledger,
        problems,
        async sign(payer, amount) {
          const opened = chains.chain(network)!;
          const payload = await payer.sign(await opened.requirements(amount, null));
          return { payload, payment: opened.read(payload) };
        },
        async close() {
          if (!gateways.delete(gateway)) return;
          await chains.close();
          await ledger.close();
        },
      };
      gateways.add(gateway);
      return gateway;
    },

    finalize: chain.finalize,

    async unfinished() {
      const rows = await Promise.all(OPEN.map((statement) => opened.database.query(statement)));
      return rows.flat().map((row) => row['row'] as string);
    },

    async settle(given) {
      const gateway = given ?? (await world.gateway({ aheadMs: 60_000 }));
      await world.finalize();
      const ended = async () => {
        await gateway.chains.audit();
        return (await world.unfinished()).length === 0;
      };
      const state = async () =>
        `not at an end: ${(await world.unfinished()).join(', ')}; ${gateway.problems.join('; ')}`;
      await whileBlocksCome(world, ended, state);
      const [reserves] = await gateway.chains.audit();
      expect(reserves?.error).toBeNull();
      expect(reserves!.reserves!.held).toBe(reserves!.reserves!.booked);
      const held = await Promise.all(world.treasuries.map(chain.balanceOf));
      expect(reserves!.reserves!.held).toBe(held.reduce((sum, one) => sum + one, 0n));
      const report = await audit(opened.database);
      expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
      expect((await createChainRows(opened.database, { now: Date.now }).find(network))!.halted).toBeNull();
      if (given === undefined) await gateway.close();
    },

    async available(account) {
      const [row] = await opened.database.query(BALANCE, [account]);
      return (row?.['available'] ?? 0n) as MicroUsd;
    },

    async close() {
      for (const gateway of gateways) await gateway.close();
      await opened.dispose();
      await chain.stop();
    },
  };
  return world;
}

const BALANCE = adHoc('SELECT available FROM accounts WHERE id = $1');
