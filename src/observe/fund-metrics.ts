import { Gauge, type Registry } from 'prom-client';

/** How money over chains stands. Amounts are micro-USD, times epoch milliseconds. */
export interface FundFigures {
  readonly chains: readonly {
    /** CAIP-2. */
    readonly network: string;
    readonly answers: boolean;
    /** null before the first comparison. */
    readonly held: bigint | null;
    readonly booked: bigint | null;
    readonly halted: boolean;
  }[];
  readonly open: readonly {
    readonly network: string;
    readonly kind: 'deposits' | 'unfinal' | 'withdrawals';
    readonly count: number;
    readonly oldest: number;
  }[];
}

export interface FundMetricsOptions {
  readonly registry: Registry;
  /** Asked at each scrape. */
  readonly figures: () => Promise<FundFigures>;
  readonly now: () => number;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Deposits by what they wait for: to be known, or to be final. */
const DEPOSITS = [
  ['deposits', 'unknown'],
  ['unfinal', 'unfinal'],
] as const;

export interface FundMetrics {
  /** A scrape begins: the figures are asked for anew. */
  scraped(): void;
}

/**
 * Metrics of money over chains. Every process of a gateway shows the same, as they are of the database; without an
 * answer of it they are left out.
 */
export function createFundMetrics({ registry, figures, now }: FundMetricsOptions): FundMetrics {
  // One question for all gauges of a scrape, which are asked in several turns of the event loop.
  let asked: Promise<FundFigures | null> | null = null;
  const ask = (): Promise<FundFigures | null> => (asked ??= figures().catch(() => null));

  const gauge = (
    name: string,
    help: string,
    labelNames: readonly string[],
    samples: (of: FundFigures) => Iterable<Sample>,
    aggregator: 'max' | 'min' = 'max',
  ): void => {
    registry.registerMetric(
      new Gauge({
        name,
        help,
        labelNames: [...labelNames],
        registers: [],
        aggregator,
        async collect() {
          const found = await ask();
          this.reset();
          if (found !== null) for (const [labels, value] of samples(found)) this.set(labels, value);
        },
      }),
    );
  };
  const ofChains = (value: (chain: FundFigures['chains'][number]) => number | null) => (of: FundFigures) =>
    of.chains.flatMap((chain): Sample[] => {
      const at = value(chain);
      return at === null ? [] : [[{ network: chain.network }, at]];
    });
  const openOf = ({ open }: FundFigures, network: string, kind: FundFigures['open'][number]['kind']) =>
    open.find((one) => one.network === network && one.kind === kind) ?? { count: 0, oldest: null };
  const age = ({ oldest }: { readonly oldest: number | null }) =>
    oldest === null ? 0 : Math.max(0, now() - oldest) / 1_000;
  const ofDeposits =
    (value: (of: { readonly count: number; readonly oldest: number | null }) => number) => (of: FundFigures) =>
      of.chains.flatMap(({ network }) =>
        DEPOSITS.map(([kind, label]): Sample => [{ network, kind: label }, value(openOf(of, network, kind))]),
      );
  const ofWithdrawals =
    (value: (of: { readonly count: number; readonly oldest: number | null }) => number) => (of: FundFigures) =>
      of.chains.map(({ network }): Sample => [{ network }, value(openOf(of, network, 'withdrawals'))]);

  const money = (amount: bigint | null) => (amount === null ? null : Number(amount));
  gauge(
    'tollgate_treasury_held_micro_usd',
    'What the treasury held when it was last compared with the books, in micro-USD',
    ['network'],
    ofChains((one) => money(one.held)),
  );
  gauge(
    'tollgate_treasury_booked_micro_usd',
    'What the books said then that it holds, in micro-USD',
    ['network'],
    ofChains((one) => money(one.booked)),
  );
  gauge(
    'tollgate_chain_answers',
    '1 while the chain answers this gateway',
    ['network'],
    ofChains((one) => (one.answers ? 1 : 0)),
    'min',
  );
  gauge(
    'tollgate_withdrawals_halted',
    '1 while nothing is paid out over the chain',
    ['network'],
    ofChains((one) => (one.halted ? 1 : 0)),
  );
  gauge(
    'tollgate_deposits_open',
    'Deposits that wait: unknown, for their chain to show them; unfinal, credited, for it to make them final',
    ['network', 'kind'],
    ofDeposits(({ count }) => count),
  );
  gauge('tollgate_deposits_oldest_seconds', 'Age of the oldest of them', ['network', 'kind'], ofDeposits(age));
  gauge(
    'tollgate_withdrawals_open',
    'Withdrawals that are not at their end',
    ['network'],
    ofWithdrawals(({ count }) => count),
  );
  gauge('tollgate_withdrawals_oldest_seconds', 'Age of the oldest of them', ['network'], ofWithdrawals(age));

  return { scraped: () => void (asked = null) };
}
