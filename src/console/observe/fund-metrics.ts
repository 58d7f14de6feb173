import type { Registry } from 'prom-client';
import { gauges, type GaugeRow, type Sample } from './prometheus.ts';

/** The state of money over chains. Amounts are micro-USD, times are epoch milliseconds. */
export interface FundFigures {
  readonly chains: readonly {
    /** CAIP-2. */
    readonly network: string;
    readonly answers: boolean;
    /** Time of the last comparison with the books; before the first, the start of the gateway. */
    readonly comparedAt: number;
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

interface FundMetricsOptions {
  readonly registry: Registry;
  readonly figures: () => Promise<FundFigures>;
  readonly now: () => number;
}

type OpenFunds = FundFigures['open'][number];

/** Labels of deposits: `unknown` until their chain shows them, `unfinal` until the chain makes them final. */
const DEPOSITS = [
  ['deposits', 'unknown'],
  ['unfinal', 'unfinal'],
] as const;

export interface FundMetrics {
  /** To be called when a scrape begins, so that the figures are read again. */
  scraped(): void;
}

/**
 * Metrics of money over chains. They come from the database, so every process of a gateway shows the same. Only
 * `tollgate_chain_answers` is what each process observes itself. Without figures the metrics are left out.
 */
export function createFundMetrics({ registry, figures, now }: FundMetricsOptions): FundMetrics {
  // One query for all gauges of a scrape. The gauges are read in several turns of the event loop.
  let reading: Promise<FundFigures | null> | null = null;
  const read = (samples: (funds: FundFigures) => readonly Sample[]) => async () => {
    const funds = await (reading ??= figures().catch(() => null));
    return funds === null ? [] : samples(funds);
  };
  const age = (open: OpenFunds | undefined) => (open === undefined ? 0 : Math.max(0, now() - open.oldest) / 1_000);
  const count = (open: OpenFunds | undefined) => open?.count ?? 0;
  const answers = read(ofChains((chain) => chain.answers));
  const compared: readonly GaugeRow[] = [
    [
      'tollgate_treasury_held_micro_usd',
      'Balance of the treasury at the last comparison with the books, in micro-USD',
      read(ofChains(({ held }) => held)),
    ],
    [
      'tollgate_treasury_booked_micro_usd',
      'Balance of the treasury in the books at that comparison, in micro-USD',
      read(ofChains(({ booked }) => booked)),
    ],
  ];
  const late: GaugeRow = [
    'tollgate_treasury_compared_seconds',
    'Seconds since the treasury was last compared with the books',
    read(ofChains(({ comparedAt }) => Math.max(0, now() - comparedAt) / 1_000)),
  ];
  const waiting: readonly GaugeRow[] = [
    [
      'tollgate_withdrawals_halted',
      '1 while payouts over the chain are halted',
      read(ofChains(({ halted }) => halted)),
    ],
    [
      'tollgate_deposits_open',
      'Deposits that wait: unknown are not on their chain yet; unfinal are credited but not final yet',
      read(ofDeposits(count)),
      'kind',
    ],
    ['tollgate_deposits_oldest_seconds', 'Age of the oldest of them', read(ofDeposits(age)), 'kind'],
    ['tollgate_withdrawals_open', 'Withdrawals that are not finished', read(ofWithdrawals(count))],
    ['tollgate_withdrawals_oldest_seconds', 'Age of the oldest of them', read(ofWithdrawals(age))],
  ];
  gauges(registry, ['network'], compared, 'max');
  gauges(registry, ['network'], [late], 'max');
  gauges(registry, ['network'], [['tollgate_chain_answers', '1 while the chain answers this gateway', answers]], 'min');
  gauges(registry, ['network'], waiting, 'max');
  return { scraped: () => void (reading = null) };
}

const ofChains =
  (value: (chain: FundFigures['chains'][number]) => bigint | number | boolean | null) => (funds: FundFigures) =>
    funds.chains.flatMap((chain): Sample[] => {
      const amount = value(chain);
      return amount === null ? [] : [[{ network: chain.network }, Number(amount)]];
    });

const openOf = ({ open }: FundFigures, network: string, kind: OpenFunds['kind']) =>
  open.find((one) => one.network === network && one.kind === kind);

const ofDeposits = (value: (open: OpenFunds | undefined) => number) => (funds: FundFigures) =>
  funds.chains.flatMap(({ network }) =>
    DEPOSITS.map(([kind, label]): Sample => [{ network, kind: label }, value(openOf(funds, network, kind))]),
  );

const ofWithdrawals = (value: (open: OpenFunds | undefined) => number) => (funds: FundFigures) =>
  funds.chains.map(({ network }): Sample => [{ network }, value(openOf(funds, network, 'withdrawals'))]);
