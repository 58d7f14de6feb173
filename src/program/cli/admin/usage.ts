import { Command, Option } from 'commander';
import {
  type AdminClient,
  administer,
  csvOption,
  printFile,
  withAdminOptions,
  type AdminFlags,
} from './admin-client.ts';
import { ACCOUNT, findAccountPath } from './names.ts';
import { limitOf, painter, table, usd } from '../terminal.ts';

interface Call {
  readonly id: string;
  readonly created_at: string;
  readonly state: string;
  readonly outcome: string | null;
  readonly failed: boolean;
  readonly service: string | null;
  readonly tool: string | null;
  readonly provider_name: string | null;
  readonly failed_attempts: readonly { readonly provider: string }[];
  readonly cost_micro_usdc: number;
  /** Absent without a refund. */
  readonly refunded_micro_usdc?: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly error_code: string | null;
}

interface CallsFlags extends AdminFlags {
  readonly service?: string;
  readonly from?: string;
  readonly to?: string;
  readonly state?: string;
  readonly failed?: boolean;
  readonly limit?: string;
}

const PAGE = 100;

const ERROR_CHARS = 100;

/** The beginning of a text, up to a word, with an ellipsis if there is more. */
const shortened = (text: string): string =>
  text.length <= ERROR_CHARS
    ? text
    : `${text.slice(0, text.lastIndexOf(' ', ERROR_CHARS) + 1 || ERROR_CHARS).trimEnd()} …`;

function endOf({ status, state, outcome, failed, refunded_micro_usdc: refunded }: Call): string {
  const end = `${status ?? state} ${failed ? 'failed' : (outcome ?? '')}`.trim();
  return refunded === undefined ? end : `${end}, refunded ${usd(refunded)}`;
}

export function callsCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('calls')
      .summary('the calls of an account, with their costs and errors')
      .description('The calls of an account, the newest first, also those that run. `tollgate call <id>` shows one.')
      .argument(...ACCOUNT)
      .option('--service <name>', 'only calls of this service')
      .option('--from <time>', 'only calls that began then or later: a UTC date, or a time with time zone')
      .option('--to <time>', 'only calls that began then or before')
      .addOption(
        new Option('--state <state>', 'only calls in this state').choices(['held', 'settled', 'released', 'expired']),
      )
      .option('--failed', 'only calls that failed, whatever their state')
      .option('--limit <calls>', 'at most so many', '50'),
  ).action((name: string, { service, from, to, state, failed, limit = '50', ...flags }: CallsFlags) =>
    administer(flags, {
      async run(admin) {
        const calls: Call[] = [];
        const path = await findAccountPath(admin, name);
        const most = limitOf(limit);
        let cursor: string | null | undefined;
        while (calls.length < most && cursor !== null) {
          const query = queryOf({
            service,
            from,
            to,
            state,
            failed: failed === true ? 'true' : undefined,
            cursor,
            limit: `${Math.min(PAGE, most - calls.length)}`,
          });
          const page = await admin.request('GET', `${path}/calls?${query}`);
          calls.push(...(page.data as Call[]));
          cursor = (page as typeof page & { readonly next_cursor: string | null }).next_cursor;
        }
        return calls;
      },
      show: (calls) =>
        calls.length === 0
          ? 'No calls.'
          : table(
              ['BEGAN', 'CALL', 'SERVICE', 'PROVIDER', 'USD', 'ENDED', 'ERROR'],
              calls.map((call) => [
                call.created_at.slice(0, 19).replace('T', ' '),
                call.id,
                [call.service, call.tool].filter((part) => part !== null).join(' '),
                call.provider_name ?? call.failed_attempts.at(-1)?.provider ?? '',
                usd(call.cost_micro_usdc),
                call.state === 'held' ? 'runs' : endOf(call),
                shortened(call.error ?? (call.failed ? call.error_code : null) ?? ''),
              ]),
              paint,
              ['USD'],
            ),
    }),
  );
}

type Row = Readonly<Record<string, string | number | null>>;
interface Usage {
  readonly data: readonly Row[];
  readonly totals: Row;
  readonly group_by: readonly string[];
  readonly date_range: { readonly start_date: string; readonly end_date: string };
  /** The figures have all calls up to this time. null before the first call. */
  readonly as_of: string | null;
}

interface UsageFlags extends AdminFlags {
  readonly csv?: boolean;
  readonly groupBy?: string;
  readonly from?: string;
  readonly to?: string;
  readonly timeZone?: string;
}

/** The columns of the groups, and after them those of the sums. */
const GROUPS = [
  'date',
  'week',
  'month',
  'account',
  'model',
  'key_label',
  'member',
  'provider_name',
  'primitive',
  'tag',
];
const SUMS = { requests: 'CALLS', failed: 'FAILED', prompt_tokens: 'TOKENS IN', completion_tokens: 'TOKENS OUT' };

export function usageCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('usage')
      .summary('what an account or all accounts used and spent, by month, customer, model, key, tag')
      .description(
        'What an account used and spent, or all accounts, in sums of days. Without dates: today and the 7 days before; by week or month, from the first day of that week or month on.',
      )
      .argument('[account]', `${ACCOUNT[1]}; all accounts without this`)
      .option(
        '--group-by <groups>',
        'day, week or month; account, model, key, member, provider, primitive, tag:<name>; with commas. By day without this, and all accounts by account',
      )
      .option('--from <date>', 'the first day, such as 2026-10-01')
      .option('--to <date>', 'the last day')
      .option('--time-zone <name>', 'the zone of days by its IANA name, such as Europe/Berlin; UTC without this')
      .addOption(csvOption()),
  )
    .addHelpText('after', USAGE_HELP)
    .action((name: string | undefined, { groupBy, from, to, timeZone, csv, ...flags }: UsageFlags) => {
      const query = { group_by: groupBy, start_date: from, end_date: to, time_zone: timeZone };
      const path = async (admin: AdminClient, format?: string) =>
        `${name === undefined ? '' : await findAccountPath(admin, name)}/usage?${queryOf({ ...query, format })}`;
      if (csv) return printFile(flags, (admin) => path(admin, 'csv'));
      return administer(flags, {
        async run(admin) {
          const { data, totals, group_by, date_range, as_of } = (await admin.request(
            'GET',
            await path(admin),
          )) as object as Usage;
          return { data, totals, group_by, date_range, as_of };
        },
        show: ({ data, totals, date_range: { start_date, end_date }, as_of }) => {
          const days = `Days from ${start_date} to ${end_date}, in ${timeZone ?? 'UTC'}. ${as_of === null ? 'No call is counted yet.' : `Calls until ${as_of} are counted.`}`;
          if (data.length === 0) return `No calls. ${days}`;
          const groups = GROUPS.filter((group) => group in data[0]!);
          const cells = (row: Row) => [
            ...Object.keys(SUMS).map((sum) => `${row[sum]}`),
            usd(Number(row['cost_micro_usdc'])),
          ];
          const headings = [
            ...groups.map((group) => group.replace(/_.*/, '').toUpperCase()),
            ...Object.values(SUMS),
            'USD',
          ];
          const rows = [
            ...data.map((row) => [...groups.map((group) => `${row[group] ?? '–'}`), ...cells(row)]),
            [...groups.map((_, index) => (index === 0 ? 'all' : '')), ...cells(totals)],
          ];
          return `${table(headings, rows, paint, [...Object.values(SUMS), 'USD'])}\n${paint('dim', days)}`;
        },
      });
    });
}

const USAGE_HELP = `
Examples:
  tollgate usage acme --group-by month,model --from 2026-01-01 --to 2026-06-30
  tollgate usage --group-by month,account,tag:team --from 2026-10-01 --to 2026-10-31
  tollgate usage --group-by month,account --from 2026-10-01 --time-zone Europe/Berlin --csv > october.csv`;

const queryOf = (members: Readonly<Record<string, string | null | undefined>>): string =>
  new URLSearchParams(
    Object.entries(members).flatMap(([name, value]) => (value == null ? [] : [[name, value] as [string, string]])),
  ).toString();
