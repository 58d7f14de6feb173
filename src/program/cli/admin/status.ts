import { Command, Option } from 'commander';
import { administer, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { painter, table, type Paint, usd } from '../terminal.ts';

export const RANGES = ['24h', '7d', '30d'];

interface CallSums {
  readonly requests: number;
  readonly failed: number;
  readonly charged_micro_usdc: number;
  readonly cost_micro_usd: number;
  readonly margin_micro_usd: number;
  /** This and the next two are absent in the figures of an older gateway. */
  readonly providers_micro_usdc?: number;
  readonly unknown_cost_requests?: number;
  readonly unknown_cost_micro_usdc?: number;
}

interface Overview {
  readonly range: string;
  readonly totals: CallSums;
  readonly accounts: number;
  readonly failures: readonly { readonly cause: string; readonly failed: number }[];
  readonly customers: readonly (Pick<CallSums, 'requests' | 'failed' | 'charged_micro_usdc'> & {
    readonly account: string;
    readonly label: string;
  })[];
  readonly services: readonly (CallSums & { readonly primitive: string; readonly service: string })[];
  readonly money: {
    readonly deposits_micro_usdc: number;
    readonly locked_micro_usdc: number;
    readonly owed_to_providers_micro_usdc: number;
    readonly operator_micro_usdc: number;
  };
  readonly alerts: readonly {
    readonly level: string;
    readonly message: string;
    readonly subject: string;
    readonly count: number;
    readonly first_at: string;
    readonly last_at: string;
  }[];
  /** null without a gateway. Absent from an older one. */
  readonly alerts_since?: string | null;
  readonly gateways: readonly {
    readonly host: string;
    readonly pid: number;
    readonly version: string;
    readonly state: string;
    readonly started_at: string;
    readonly checks: Readonly<Record<string, string>>;
    readonly in_flight: number;
  }[];
}

const LINES = 5;

export function statusCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('status')
      .summary('what the gateway does: volume, margin, failures, money, alerts')
      .description(
        'The state of the whole gateway: volume, margin and failures, who called and what served most, whose money rests here, the alerts of the last day (since the start of each gateway), and all gateways of the database. Without a running gateway it shows the books alone.',
      )
      .addOption(new Option('--range <range>', 'of which time').choices(RANGES).default('24h')),
  ).action(({ range, ...flags }: AdminFlags & { readonly range: string }) =>
    administer(flags, {
      run: async (admin) => (await admin.request('GET', `/overview?range=${range}`)).data as Overview,
      show(overview) {
        const { totals, money, failures, customers, services, alerts, gateways } = overview;
        const parts = [
          table(
            ['RANGE', 'SERVED', 'FAILED', 'ACCOUNTS', 'CHARGED', 'TO PROVIDERS', 'OF UNKNOWN COST', 'COST', 'MARGIN'],
            [
              [
                overview.range,
                `${totals.requests}`,
                `${totals.failed}`,
                `${overview.accounts}`,
                usd(totals.charged_micro_usdc),
                usd(totals.providers_micro_usdc ?? 0),
                unknownOf(totals),
                costOf(totals),
                marginOf(totals),
              ],
            ],
            paint,
            ['SERVED', 'FAILED', 'ACCOUNTS', 'CHARGED', 'TO PROVIDERS', 'OF UNKNOWN COST', 'COST', 'MARGIN'],
          ),
          table(
            ['DEPOSITS', 'LOCKED', 'OWED TO PROVIDERS', 'OPERATOR'],
            [
              [
                usd(money.deposits_micro_usdc),
                usd(money.locked_micro_usdc),
                usd(money.owed_to_providers_micro_usdc),
                usd(money.operator_micro_usdc),
              ],
            ],
            paint,
            ['DEPOSITS', 'LOCKED', 'OWED TO PROVIDERS', 'OPERATOR'],
          ),
        ];
        const add = (heads: readonly string[], rows: readonly (readonly string[])[], numbers: readonly string[]) => {
          if (rows.length > 0) parts.push(table(heads, rows, paint, numbers));
        };
        add(
          ['FAILED BECAUSE', 'CALLS'],
          failures.slice(0, LINES).map(({ cause, failed }) => [cause, `${failed}`]),
          ['CALLS'],
        );
        add(
          ['CUSTOMER', 'SERVED', 'FAILED', 'USD'],
          customers
            .slice(0, LINES)
            .map((row) => [row.label || row.account, `${row.requests}`, `${row.failed}`, usd(row.charged_micro_usdc)]),
          ['SERVED', 'FAILED', 'USD'],
        );
        add(
          ['SERVICE', 'SERVED', 'FAILED', 'USD', 'OF UNKNOWN COST', 'COST', 'MARGIN'],
          services
            .slice(0, LINES)
            .map((row) => [
              row.service,
              `${row.requests}`,
              `${row.failed}`,
              usd(row.charged_micro_usdc),
              unknownOf(row),
              costOf(row),
              marginOf(row),
            ]),
          ['SERVED', 'FAILED', 'USD', 'OF UNKNOWN COST', 'COST', 'MARGIN'],
        );
        add(
          ['ALERT', 'ABOUT', 'TIMES', 'FIRST', 'LAST'],
          alerts
            .slice(0, LINES)
            .map((row) => [row.message, row.subject, `${row.count}`, timeOf(row.first_at), timeOf(row.last_at)]),
          ['TIMES'],
        );
        if (overview.alerts_since != null)
          parts.push(
            alerts.length === 0
              ? `No alerts since ${timeOf(overview.alerts_since)}.`
              : `All alerts since ${timeOf(overview.alerts_since)} are known; a restart forgets those before it.`,
          );
        add(
          ['GATEWAY', 'VERSION', 'STATE', 'SINCE', 'RUNNING'],
          gateways.map((row) => [
            `${row.host} ${row.pid}`,
            row.version,
            [row.state, ...problemsOf(row.checks)].join('; '),
            timeOf(row.started_at),
            `${row.in_flight}`,
          ]),
          ['RUNNING'],
        );
        return parts.join('\n\n');
      },
    }),
  );
}

const timeOf = (text: string): string => text.slice(0, 19).replace('T', ' ');

const problemsOf = (checks: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(checks).flatMap(([part, state]) => (state === 'ok' ? [] : [`the ${part} ${state}`]));

export interface Offer {
  readonly service: string;
  readonly provider: string | null;
  readonly provider_name: string | null;
  readonly status: string | null;
  readonly status_reason: string | null;
  /** Absent from an older gateway. */
  readonly failing_accounts?: readonly string[];
  readonly price_since: string | null;
  readonly sums: CallSums;
}

const SORTS = { charged: 'charged_micro_usdc', margin: 'margin_micro_usd', failed: 'failed' } as const;
type Sort = keyof typeof SORTS;

export function servicesCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('services')
      .summary('the offers of services: health, price, cost and margin')
      .description(
        'The offers of all services: their health with its cause, and the calls, charges, costs and margin of a range. It needs a running gateway.',
      )
      .addOption(new Option('--range <range>', 'of which time').choices(RANGES).default('24h'))
      .addOption(
        new Option('--sort <figure>', 'margin: the lowest first, so what loses money; the others: the highest first')
          .choices(Object.keys(SORTS))
          .default('charged'),
      ),
  )
    .addHelpText(
      'after',
      '\nExamples:\n  tollgate services --range 30d --sort margin\n  tollgate services test acme/chat',
    )
    .enablePositionalOptions()
    .addCommand(testCommand(paint))
    .action(({ range, sort, ...flags }: AdminFlags & { readonly range: string; readonly sort: Sort }) =>
      administer(flags, {
        async run(admin) {
          const offers = (await admin.request('GET', `/services?range=${range}`)).data as readonly Offer[];
          const sign = sort === 'margin' ? 1 : -1;
          return offers.toSorted((a, b) => sign * (a.sums[SORTS[sort]] - b.sums[SORTS[sort]]));
        },
        show: (offers) => (offers.length === 0 ? 'No services.' : offerTable(offers, paint)),
      }),
    );
}

export const offerTable = (offers: readonly Offer[], paint: Paint): string =>
  table(
    ['SERVICE', 'PROVIDER', 'STATE', 'SERVED', 'FAILED', 'USD', 'COST', 'MARGIN', 'PRICE SINCE', 'BECAUSE'],
    offers.map((row) => [
      row.service,
      row.provider_name ?? row.provider?.slice(0, 8) ?? 'nobody served',
      stateOf(row),
      `${row.sums.requests}`,
      `${row.sums.failed}`,
      usd(row.sums.charged_micro_usdc),
      costOf(row.sums),
      marginOf(row.sums),
      row.price_since?.slice(0, 10) ?? '',
      (row.status_reason ?? '').slice(0, REASON_CHARS),
    ]),
    paint,
    ['SERVED', 'FAILED', 'USD', 'COST', 'MARGIN'],
  );

function stateOf({ status, failing_accounts: accounts = [] }: Offer): string {
  if (status !== 'degraded') return status ?? 'not offered';
  if (accounts.length === 0) return 'failed last';
  return `failing for ${accounts.length} account${accounts.length === 1 ? '' : 's'}`;
}

interface Trial {
  readonly ok: boolean;
  readonly call: string | null;
  readonly answer: string | null;
  readonly error: string | null;
  readonly duration_ms: number;
  readonly cost_usd: string;
}

function testCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('test')
      .summary('make one small real call of a chat model')
      .description(
        'Make one small real call of a chat model. It is billed to the account tollgate:local:operator, which you create and credit like any other. Exits with 1 if the call fails.',
      )
      .argument('<service>', 'name of a chat model')
      .option('--provider <key>', 'the public key of one of its providers'),
  ).action((service: string, { provider, ...flags }: AdminFlags & { readonly provider?: string }) =>
    administer(flags, {
      async run(admin) {
        const body = { service, ...(provider !== undefined && { provider }) };
        const trial = (await admin.request('POST', '/services/test', body)).data as Trial;
        if (!trial.ok) process.exitCode = 1;
        return trial;
      },
      show: ({ ok, call, answer, error, duration_ms: ms, cost_usd: cost }) =>
        `${ok ? paint('green', '✓') : paint('red', '✗')} ${ok ? JSON.stringify(answer) : error} (${ms} ms, ${cost} USD${call === null ? '' : `, ${call}`})`,
    }),
  );
}

const REASON_CHARS = 60;

/** Whether the cost of no served call is known. */
const isUnknown = ({ unknown_cost_requests: unknown = 0, requests, cost_micro_usd: cost }: CallSums): boolean =>
  unknown > 0 && unknown === requests && cost === 0;
const costOf = (sums: CallSums): string => (isUnknown(sums) ? 'unknown' : usd(sums.cost_micro_usd));
/** The fees of calls of unknown cost are known, so that the figures of a line add up to what was charged. */
const marginOf = (sums: CallSums): string =>
  isUnknown(sums) && sums.margin_micro_usd === 0 ? 'unknown' : usd(sums.margin_micro_usd);

function unknownOf({ unknown_cost_requests: calls = 0, unknown_cost_micro_usdc: micro = 0 }: CallSums): string {
  if (calls === 0 && micro === 0) return usd(0);
  return `${usd(micro)} of ${calls} call${calls === 1 ? '' : 's'}`;
}
