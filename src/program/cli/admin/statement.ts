import { Command, Option } from 'commander';
import {
  type AdminClient,
  administer,
  csvOption,
  printFile,
  withAdminOptions,
  withGatewayOptions,
  type AdminFlags,
} from './admin-client.ts';
import { ACCOUNT, findAccountPath } from './names.ts';
import { painter, table, usd } from '../terminal.ts';

/** The statement of a month in the form of the admin API. Amounts are micro-USD. */
interface Statement {
  readonly month: string;
  readonly time_zone: string;
  readonly complete: boolean;
  readonly opening_micro_usdc: number;
  readonly closing_micro_usdc: number;
  readonly charged_micro_usdc: number;
  readonly charged_calls: number;
  readonly movements: readonly {
    readonly date: string;
    readonly kind: string;
    readonly id: string | null;
    readonly calls: number;
    readonly service: string | null;
    readonly reason: string | null;
    readonly amount_micro_usdc: number;
    readonly balance_micro_usdc: number;
  }[];
}

interface StatementFlags extends AdminFlags {
  readonly timeZone?: string;
  readonly calls: 'each' | 'daily';
  readonly csv?: boolean;
}

const HELP = `
Examples:
  tollgate statement acme 2026-10
  tollgate statement acme 2026-10 --time-zone Europe/Berlin --calls each
  tollgate statement acme 2026-10 --csv > statement.csv`;

export function statementCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('statement')
      .summary('every movement of an account in a month, and its balances')
      .description('Every movement of an account in a month, with the balance before and after it.')
      .argument(...ACCOUNT)
      .argument('<month>', 'such as 2026-10')
      .option('--time-zone <name>', 'the zone of days and months by its IANA name; UTC without this')
      .addOption(
        new Option('--calls <how>', 'a line for each charged call, or for those of a day and a service')
          .choices(['each', 'daily'])
          .default('daily'),
      )
      .addOption(csvOption()),
  )
    .addHelpText('after', HELP)
    .action((account: string, month: string, { timeZone, calls, csv, ...flags }: StatementFlags) => {
      const query = new URLSearchParams({ calls, ...(timeZone === undefined ? {} : { time_zone: timeZone }) });
      const path = async (admin: AdminClient) =>
        `${await findAccountPath(admin, account)}/statements/${encodeURIComponent(month)}?${query}`;
      if (csv) return printFile(flags, async (admin) => `${await path(admin)}&format=csv`);
      return administer(flags, {
        run: async (admin) => (await admin.request('GET', await path(admin))).data as Statement,
        show: (statement) => {
          const edge = (date: string, text: string, balance: number) => [date, text, '', '', usd(balance)];
          const rows = [
            edge(statement.month, 'opening balance', statement.opening_micro_usdc),
            ...statement.movements.map((one) => [
              one.date,
              one.service === null ? one.kind : `${one.kind} ${one.service}`,
              one.calls > 1 ? `${one.calls}` : (one.reason ?? one.id ?? (one.calls === 1 ? '1' : '')),
              usd(one.amount_micro_usdc),
              usd(one.balance_micro_usdc),
            ]),
            edge(statement.complete ? statement.month : 'until now', 'closing balance', statement.closing_micro_usdc),
          ];
          const title = `${statement.month}, ${statement.time_zone}: ${usd(statement.charged_micro_usdc)} USD for ${statement.charged_calls} charged calls\n`;
          return `${title}\n${table(['DATE', 'MOVEMENT', 'CALLS OR REASON', 'USD', 'BALANCE'], rows, paint, ['USD', 'BALANCE'])}`;
        },
      });
    });
}

const FOCUS_HELP = `
Examples:
  tollgate focus 2026-10 > focus.csv
  tollgate focus 2026-10 --account acme > focus.csv`;

export function focusCommand(): Command {
  return withGatewayOptions(
    new Command('focus')
      .summary('usage and cost of a month in the columns of FOCUS 1.2, as CSV')
      .description(
        'Usage and cost of a UTC month as CSV, in the columns of FOCUS 1.2, the FinOps Open Cost and Usage Specification.',
      )
      .argument('<month>', 'such as 2026-10')
      .option('--account <name>', 'only this account, by its name, id or label'),
  )
    .addHelpText('after', FOCUS_HELP)
    .action((month: string, { account, ...flags }: AdminFlags & { readonly account?: string }) => {
      const name = encodeURIComponent(month);
      return printFile(flags, async (admin) =>
        account === undefined ? `/focus/${name}` : `${await findAccountPath(admin, account)}/statements/${name}/focus`,
      );
    });
}
