import { setTimeout as pause } from 'node:timers/promises';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { toBytes, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { expect } from 'vitest';
import { audit, createLedger, type Chains, type Ledger, type MicroUsd, type PaymentPayload, type SignedPayment } from '#billing';
import type { Database, OpenDatabase } from '#store';
import { createChainRows } from '../../../src/billing/chain/chain-rows.ts';
import { openChains, type ChainPolicy } from '../../../src/billing/chain/chains.ts';
import { adHoc } from '../ad-hoc.ts';
import { openEngine, type EngineName } from '../engines.ts';
import { startAnvil, type Anvil, type AnvilOptions } from './anvil.ts';
import { deployEvmToken, type EvmToken, type TokenOptions } from './evm-token.ts';

const POLICY: ChainPolicy = { confirmations: 1, unfinalMax: 10_000_000_000n, withdrawalMin: 1n, withdrawalDailyMax: 10_000_000_000n };

/** A wallet with USDC. */
export interface Payer {
  readonly wallet: PrivateKeyAccount;
  /** Its account in the ledger. */
  readonly account: string;
}

/** An EVM chain with a token and a treasury, and books on a database. Gateways are opened on it, one or several, one after the other. */
export interface MoneyWorld {
  readonly anvil: Anvil;
  readonly token: EvmToken;
  readonly network: string;
  readonly treasury: Hex;
  readonly database: OpenDatabase;
  /** Another connection to the same database: PostgreSQL only. */
  again(): Promise<OpenDatabase>;
  payer(usdc?: MicroUsd): Promise<Payer>;
  gateway(options?: GatewayOptions): Promise<MoneyGateway>;
  /** Blocks until all that was done so far is final. */
  finalize(): Promise<void>;
  /** Rows of the tables of money that are not at an end. */
  unfinished(): Promise<readonly string[]>;
  /** With a gateway that works and blocks that come, until nothing is open; then the books are right, and say what the treasury holds. */
  settle(gateway?: MoneyGateway): Promise<void>;
  /** Available of a ledger account. */
  available(account: string): Promise<MicroUsd>;
  close(): Promise<void>;
}

export interface GatewayOptions {
  /** Of what stands before the node. */
  readonly rpcUrl?: string;
  readonly facilitator?: 'in-process' | URL;
  readonly policy?: Partial<ChainPolicy>;
  readonly finality?: number;
  readonly database?: OpenDatabase;
  readonly waitMs?: number;
  readonly timeoutMs?: number;
  /** Ahead of the clock: what others have taken for a while is due. */
  readonly aheadMs?: number;
  /** What stands between the rules of money and the database or the ledger. */
  readonly through?: Through;
}

export interface Through {
  database(real: Database): Database;
  ledger(real: Ledger): Pick<Ledger, 'transfer' | 'balance'>;
}

export interface MoneyGateway {
  readonly chains: Chains;
  readonly ledger: Ledger;
  /** What somebody should look at. */
  readonly problems: readonly string[];
  /** What a wallet signs of the terms of this gateway. */
  sign(payer: Payer, amount: MicroUsd): Promise<{ readonly payload: PaymentPayload; readonly payment: SignedPayment }>;
  close(): Promise<void>;
}

const WAIT_MS = 20_000;
const OPEN = [
  adHoc(
    "SELECT 'deposit ' || id || ' ' || state AS row FROM deposits WHERE state NOT IN ('final', 'failed', 'reversed') OR next_look_at IS NOT NULL",
  ),
  adHoc("SELECT 'withdrawal ' || id || ' ' || state AS row FROM withdrawals WHERE state NOT IN ('paid', 'returned', 'refused')"),
];

export async function openMoneyWorld(
  engine: EngineName = 'sqlite',
  options: { readonly anvil?: AnvilOptions; readonly token?: TokenOptions } = {},
): Promise<MoneyWorld> {
  const anvil = await startAnvil(options.anvil);
  const token = await deployEvmToken(anvil, options.token);
  const opened = await openEngine(engine);
  const network = `eip155:${anvil.chainId}`;
  const key = generatePrivateKey();
  const treasury = privateKeyToAccount(key).address;
  await anvil.setBalance(treasury, 10n ** 20n);
  // So that the token is there in what is final.
  await anvil.mine(2 * (options.anvil?.slotsInAnEpoch ?? 1) + 1);
  const gateways = new Set<MoneyGateway>();

  const world: MoneyWorld = {
    anvil,
    token,
    network,
    treasury,
    database: opened.database,
    again: opened.again,
    async payer(usdc = 100_000_000n) {
      const wallet = privateKeyToAccount(generatePrivateKey());
      if (usdc > 0n) await token.mint(wallet.address, usdc);
      return { wallet, account: `eip155:${wallet.address.toLowerCase()}` };
    },

    async gateway({
      rpcUrl = anvil.url,
      facilitator = 'in-process',
      policy,
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
            network,
            rpcUrl,
            asset: token.address,
            assetName: token.name,
            assetVersion: token.version,
            treasuryKey: toBytes(key),
            facilitator,
            finality,
            timeoutMs,
            now,
            policy: { ...POLICY, ...policy },
          },
        ],
        waitMs,
        watchMs: 200,
        compareMs: 3_600_000,
        accountOfMemo: async () => null,
        onProblem: (problem, of) => problems.push(`${problem} ${String(of['error'] ?? of['reason'] ?? '')}`),
        onChange: (_network, answers, error) => void (answers || problems.push(String(error))),
        now,
      });
      const gateway: MoneyGateway = {
        chains,
        ledger,
        problems,
        async sign({ wallet }, amount) {
          const chain = chains.chain(network)!;
          const requirements = await chain.requirements(amount, null);
          const { payload } = await new ExactEvmScheme(wallet).createPaymentPayload(2, {
            ...requirements,
            network: requirements.network as `eip155:${string}`,
          });
          const whole = { x402Version: 2, accepted: requirements, payload } as PaymentPayload;
          return { payload: whole, payment: chain.read(whole) };
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

    // Many at once are too much for a later reorganisation: anvil loses the state.
    finalize: () => anvil.mine(3),

    async unfinished() {
      const rows = await Promise.all(OPEN.map((statement) => opened.database.query(statement)));
      return rows.flat().map((row) => row['row'] as string);
    },

    async settle(given) {
      const gateway = given ?? (await world.gateway({ aheadMs: 60_000 }));
      const until = Date.now() + WAIT_MS;
      for (;;) {
        await world.finalize();
        await gateway.chains.audit();
        const open = await world.unfinished();
        if (open.length === 0) break;
        if (Date.now() > until) throw new Error(`not at an end: ${open.join(', ')}; ${gateway.problems.join('; ')}`);
        await pause(100);
      }
      const [reserves] = await gateway.chains.audit();
      expect(reserves?.error).toBeNull();
      expect(reserves!.reserves!.held).toBe(reserves!.reserves!.booked);
      expect(reserves!.reserves!.held).toBe(await token.balanceOf(treasury));
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
      await anvil.stop();
    },
  };
  return world;
}

const BALANCE = adHoc('SELECT available FROM accounts WHERE id = $1');
