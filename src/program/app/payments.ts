import type { Database } from '#store';
import type { Ledger } from '#billing';
import { loadChains, type ChainsOptions } from '#chains';
import type { ChainConfig, ChainPaymentsConfig, Config, KeyPlace } from '#config';
import { NO_PAYMENTS, type Payments } from '#payments';
import { createConsumerStore } from '#accounts';
import type { FundFigures, Logger } from '#observe';
import {
  createMemoAccounts,
  createPayments,
  PaymentsSetupError,
  type ChainTerms,
  type Funds,
} from '#payments/on-chains';

interface Books {
  readonly config: Pick<Config, 'chains' | 'payments'>;
  readonly database: Database;
  readonly ledger: Ledger;
  readonly now: () => number;
}

/** The books of a running gateway, which logs what happens on its chains and may open more of them. */
interface GatewayBooks extends Books {
  readonly config: Config;
  readonly logger: Logger;
  /** CAIP-2 ids of the configured chains. A reload may add some. */
  readonly networks: string[];
}

/** Money over the chains of the configuration. */
export interface OpenPayments {
  readonly payments: Payments;
  /** null if no chain has a treasury. */
  readonly funds: Funds | null;
  /** For the metrics. */
  figures(): Promise<FundFigures>;
  /**
   * Opens further chains. They are used once `commit` is called. Rejects with PaymentsSetupError. null if no chain has
   * a treasury, because adding the first one needs a restart.
   */
  readonly prepare: ((chains: readonly ChainConfig[]) => Promise<{ commit(): void }>) | null;
  close(): Promise<void>;
}

type PayingChain = ChainConfig & { readonly payments: ChainPaymentsConfig };

const isPaying = (chain: ChainConfig): chain is PayingChain => chain.payments !== null;

const NO_FUNDS: OpenPayments = {
  payments: NO_PAYMENTS,
  funds: null,
  figures: async () => ({ chains: [], open: [] }),
  prepare: null,
  close: async () => {},
};

/**
 * Opens the chains that have a treasury. Without any, no library for chains is loaded. An unreachable chain logs a
 * warning and is opened later. Rejects with PaymentsSetupError for an invalid key or setting.
 */
export async function openPayments(books: GatewayBooks): Promise<OpenPayments> {
  const { config, logger, now, networks } = books;
  const paying = config.chains.filter(isPaying);
  if (paying.length === 0) return NO_FUNDS;
  if (config.mode === 'development')
    logger.warn(
      'a development gateway with chains: what providers earn of play money can be withdrawn as real money. Use test networks',
    );

  const begun = new Map(paying.map(({ network }) => [network, now()]));
  const away = new Set<string>();
  const chains = await openAll({
    ...(await rulesOf(paying, books, networks)),
    onProblem: (level, problem, { error, ...context }) =>
      logger[level](error === undefined ? context : { ...context, err: error }, problem),
    onChange(network, answers, error) {
      if (answers) away.delete(network);
      else away.add(network);
      if (answers) logger.info({ network }, 'the chain answers again');
      else
        logger.warn(
          { network, reason: error instanceof Error ? error.message : String(error) },
          'the chain cannot be reached: payments and withdrawals over it are delayed',
        );
    },
  });

  const terms = paying.map(termsFrom);
  const answers = (network: string) => chains.chain(network) !== null && !away.has(network);
  return {
    payments: createPayments({ chains, terms, now }),
    funds: { chains, terms, answers, cooldownMs: config.payments.addressCooldownS * 1_000 },
    async figures() {
      const [books, open] = await Promise.all([chains.books(), chains.open()]);
      return {
        chains: paying.map(({ network }) => {
          const book = books.find((one) => one.network === network);
          return {
            network,
            answers: answers(network),
            comparedAt: book?.comparedAt ?? begun.get(network)!,
            held: book?.held ?? null,
            booked: book?.booked ?? null,
            halted: (book?.halted ?? null) !== null,
          };
        }),
        open,
      };
    },
    async prepare(more) {
      const added = more.filter(isPaying);
      const setups = await Promise.all(added.map((chain) => setupOf(chain, now)));
      const prepared = await inPlainWords(() => chains.prepare(setups));
      return {
        commit() {
          prepared.commit();
          paying.push(...added);
          for (const one of added.map(termsFrom)) {
            terms.push(one);
            begun.set(one.network, now());
            if (!networks.includes(one.network)) networks.push(one.network);
          }
        },
      };
    },
    close: () => chains.close(),
  };
}

/**
 * Opens the chains only to read them, on the database of a gateway that does not run. No background work starts, so
 * nothing is paid out. null if no chain has a treasury. Rejects like openPayments.
 */
export async function openBooks(books: Books): Promise<Pick<Funds, 'chains' | 'terms'> | null> {
  const paying = books.config.chains.filter(isPaying);
  if (paying.length === 0) return null;
  const networks = books.config.chains.map(({ network }) => network);
  const rules = await rulesOf(paying, books, networks);
  return {
    chains: await openAll({ ...rules, background: false, onProblem() {}, onChange() {} }),
    terms: paying.map(termsFrom),
  };
}

/**
 * The options that openPayments and openBooks share, so that both attribute incoming money to the same accounts.
 * `networks`: CAIP-2 ids of all chains. The list may grow.
 */
async function rulesOf(
  paying: readonly PayingChain[],
  { config, database, ledger, now }: Books,
  networks: readonly string[],
): Promise<Omit<ChainsOptions, 'onProblem' | 'onChange' | 'background'>> {
  const { waitMs, watchMs, compareMs, compareLateMs, strangersMax } = config.payments;
  return {
    database,
    ledger,
    chains: await Promise.all(paying.map((chain) => setupOf(chain, now))),
    waitMs,
    watchMs,
    compareMs,
    compareLateMs,
    strangersMax,
    ...createMemoAccounts({
      consumers: createConsumerStore(database, { now }),
      ledger,
      contractNetworks: networks,
    }),
    now,
  };
}

/** The terms of a chain, without the key of its treasury. */
function termsFrom({ network, payments }: PayingChain): ChainTerms {
  const { asset, minTopup, topupMax, confirmations } = payments;
  const { withdrawalMin, withdrawalFee, tokenAccountFee, withdrawalDailyMax } = payments;
  const paidOut = { withdrawalMin, withdrawalFee, tokenAccountFee, withdrawalDailyMax };
  return { network, asset, minTopup, topupMax, confirmations, ...paidOut };
}

async function openAll(options: ChainsOptions) {
  const { openChains } = await loadChains();
  return inPlainWords(() => openChains(options));
}

async function inPlainWords<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    // `#chains` reports mistakes of the operator as plain `Error`. Any other class is a fault in the code.
    if (!(error instanceof Error) || error.name !== 'Error') throw error;
    throw new PaymentsSetupError(`Payments over chains cannot begin: ${error.message}`, { cause: error });
  }
}

async function setupOf(
  { network, rpcUrl, payments }: PayingChain,
  now: () => number,
): Promise<ChainsOptions['chains'][number]> {
  const { asset, assetName, assetVersion, finality, timeoutMs, facilitator, opensAccounts } = payments;
  const { confirmations, unfinalMax, withdrawalMin, withdrawalFee, withdrawalDailyMax, moveTo } = payments;
  const { tokenAccountFee } = payments;
  return {
    network,
    rpcUrl,
    asset,
    assetName,
    assetVersion,
    treasuryKey: await loadTreasuryKey(network, payments.treasury),
    previousKey: payments.previous === null ? null : await loadTreasuryKey(network, payments.previous),
    facilitator: facilitator === 'in-process' ? facilitator : new URL(facilitator),
    finality,
    timeoutMs,
    opensAccounts,
    now,
    policy: { confirmations, unfinalMax, withdrawalMin, withdrawalFee, tokenAccountFee, withdrawalDailyMax, moveTo },
  };
}

/**
 * Loads the key of a treasury from the place that the configuration names. Rejects with PaymentsSetupError. Its message
 * never contains the key.
 */
async function loadTreasuryKey(network: string, place: KeyPlace): Promise<Uint8Array> {
  const { loadSecret, WalletError } = await import('#proxy/wallet');
  try {
    return await loadSecret({ chainId: network, ...place });
  } catch (error) {
    if (!(error instanceof WalletError)) throw error;
    throw new PaymentsSetupError(`The treasury of ${network}: ${error.message}`, { cause: error });
  }
}
