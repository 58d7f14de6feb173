import { randomUUID } from 'node:crypto';
import { createScrubber } from '#security';
import { loadOwnPages, loadProvider, type OwnPages, secretsOf } from '#proxy';
import { OWN_NAME } from '../command-line.ts';
import {
  CliError,
  facts,
  type FailedCall,
  failureTable,
  limitOf,
  onScreen,
  painter,
  say,
  table,
  refuseBadAmount,
  usd,
} from '../terminal.ts';
import { type FileFlag, providerFile } from './provider-reload.ts';

export interface OwnFlags extends FileFlag {
  readonly json?: boolean;
  readonly failed?: boolean;
  readonly limit?: string;
  readonly from?: string;
  readonly to?: string;
  readonly network?: string;
  readonly reference?: string;
}

interface Terms {
  readonly networks: readonly string[];
  readonly summary: string;
}
interface Services {
  readonly provider: string;
  readonly connected: boolean;
  readonly connected_since: string | null;
  /** Absent from an older gateway. */
  readonly banned_because?: string | null;
  readonly payout_terms: Terms;
  readonly services: readonly {
    readonly name: string;
    readonly status: string;
    readonly compliance: number;
    readonly last_hour: { readonly requests: number; readonly failures: number };
    readonly last_failures: readonly Omit<FailedCall, 'service'>[];
  }[];
}
interface Earnings {
  readonly available_micro_usdc: number;
  readonly total_earned_micro_usdc: number;
  readonly payout_terms: Terms;
  readonly by_day: readonly {
    readonly date: string;
    readonly services: readonly {
      readonly service: string;
      readonly requests: number;
      readonly earned_micro_usdc: number;
      readonly flags: Readonly<Record<string, number>>;
    }[];
  }[];
}
interface Call {
  readonly id: string;
  readonly ended_at: string;
  readonly request_id: string | null;
  readonly service: string | null;
  readonly tool: string | null;
  readonly outcome: string | null;
  /** Absent from an older gateway. */
  readonly failed?: boolean;
  readonly error_code?: string | null;
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  readonly earned_micro_usdc: number;
  readonly duration_ms: number | null;
  readonly flags: readonly string[];
}
interface Payout {
  readonly reference: string;
  readonly amount_micro_usdc: number;
  readonly paid_at: string;
  readonly note: string;
  readonly undone_at: string | null;
}
interface Withdrawal {
  readonly id: string;
  readonly status: string;
  readonly network: string;
  readonly address: string;
  readonly source: string;
  readonly amount_usd: string;
  readonly transaction: string | null;
  readonly reason: string | null;
  readonly created_at: string;
}
interface Refund {
  readonly call: string;
  readonly amount_micro_usdc: number;
  readonly reason: string;
  readonly at: string;
}

const paint = painter();
const moment = (at: string) => at.slice(0, 19).replace('T', ' ');

/** Each command by its name. All print to standard output, and reject with CliError. */
export const REPORTS = { status, calls, earnings, withdraw } as const;

/** Runs a report against the router of the file. A failure names the router, and no secret of the file. */
async function report<T>(
  flags: OwnFlags,
  read: (pages: OwnPages) => Promise<T>,
  show: (result: T) => string,
): Promise<T> {
  const { config, wallet } = await loadProvider({ file: providerFile(flags), env: process.env, program: OWN_NAME });
  const { createOwnPages } = await loadOwnPages();
  try {
    const result = await read(createOwnPages(config.router, wallet, Date.now));
    process.stdout.write(`${flags.json ? JSON.stringify(result, null, 2) : show(result)}\n`);
    return result;
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`${config.router.url} ${createScrubber(secretsOf(config))((error as Error).message)}`, {
      cause: error,
    });
  }
}

const page = async <T>(pages: OwnPages, path: string): Promise<T> => (await pages.get(path)) as object as T;

async function status(flags: OwnFlags): Promise<void> {
  const { services } = await report(
    flags,
    async (pages) => ({
      services: await page<Services>(pages, '/provider/services'),
      earnings: await page<Earnings>(pages, '/provider/earnings'),
    }),
    ({ services: own, earnings: sums }) =>
      [
        facts(
          [
            ['provider', own.provider],
            ['proxy', proxyState(own)],
            ['earnings', `${usd(sums.available_micro_usdc)} USD of ${usd(sums.total_earned_micro_usdc)} earned so far`],
            ['payouts', own.payout_terms.summary],
          ],
          paint,
        ),
        '',
        own.services.length === 0
          ? 'No service is registered. Connect the proxy.'
          : table(
              ['SERVICE', 'STATUS', 'LAST HOUR', 'FAILED', 'IN ORDER', 'LAST FAILURE'],
              own.services.map(({ name, status: state, last_hour: hour, compliance, last_failures: [last] }) => [
                name,
                state,
                String(hour.requests),
                String(hour.failures),
                `${Math.round(compliance * 100)} %`,
                last === undefined ? '-' : `${moment(last.at)} ${last.reason}`,
              ]),
              paint,
              ['LAST HOUR', 'FAILED', 'IN ORDER'],
            ),
      ].join('\n'),
  );
  if (!services.connected) process.exitCode = 1;
}

function proxyState({ connected, connected_since: since, banned_because: reason = null }: Services): string {
  if (reason !== null) return `banned by the operator of the gateway: ${onScreen(reason)}`;
  return connected ? `connected since ${moment(since ?? '')}` : 'away';
}

const PAGE = 100;

async function calls(flags: OwnFlags): Promise<void> {
  if (flags.failed) {
    await report(flags, failures, (failed) =>
      failed.length === 0 ? 'No call has failed since the gateway started.' : failureTable(failed, paint),
    );
    return;
  }
  const most = limitOf(flags.limit ?? '');
  await report(
    flags,
    (pages) => newestCalls(pages, most),
    (all) =>
      all.length === 0
        ? 'No call has ended yet.'
        : table(
            ['ENDED', 'CALL', 'SERVICE', 'IN', 'OUT', 'MS', 'EARNED', 'OUTCOME'],
            all.map((call) => [
              moment(call.ended_at),
              call.id,
              [call.service, call.tool].filter((part) => part !== null).join(' '),
              String(call.tokens_prompt),
              String(call.tokens_completion),
              call.duration_ms === null ? '-' : String(call.duration_ms),
              usd(call.earned_micro_usdc),
              [...endOf(call), ...call.flags].join(' '),
            ]),
            paint,
            ['IN', 'OUT', 'MS', 'EARNED'],
          ),
  );
}

async function newestCalls(pages: OwnPages, most: number): Promise<readonly Call[]> {
  const all: Call[] = [];
  let cursor: string | null = '';
  while (all.length < most && cursor !== null) {
    const query = new URLSearchParams({ limit: String(Math.min(PAGE, most - all.length)) });
    if (cursor !== '') query.set('cursor', cursor);
    const next: { readonly data: readonly Call[]; readonly next_cursor: string | null } = await page(
      pages,
      `/provider/calls?${query}`,
    );
    all.push(...next.data);
    cursor = next.next_cursor;
  }
  return all;
}

const endOf = ({ failed, error_code: code, outcome }: Call): readonly string[] =>
  failed === true ? ['failed', ...(code == null ? [] : [code])] : [outcome ?? '-'];

/** So many of the newest calls are searched for those that were answered with a failure. */
const SEARCHED_CALLS = 1_000;

/** The newest failures at all services, and the failures with which they answered calls, the newest first. */
async function failures(pages: OwnPages): Promise<readonly FailedCall[]> {
  const [{ services }, ended] = await Promise.all([
    page<Services>(pages, '/provider/services'),
    newestCalls(pages, SEARCHED_CALLS),
  ]);
  const answered = ended
    .filter(({ failed }) => failed)
    .map((call) => ({
      at: call.ended_at,
      service: [call.service, call.tool].filter((part) => part !== null).join(' '),
      request_id: call.request_id ?? '-',
      status: 200,
      reason: `it answered with a failure${call.error_code == null ? ', or with nothing' : `: ${call.error_code}`}`,
      said: null,
    }));
  return services
    .flatMap(({ name, last_failures: last }) => last.map((failure) => ({ ...failure, service: name })))
    .concat(answered)
    .toSorted((one, other) => other.at.localeCompare(one.at));
}

async function earnings(flags: OwnFlags): Promise<void> {
  const query = new URLSearchParams(
    Object.entries({ start_date: flags.from, end_date: flags.to }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    ),
  );
  await report(
    flags,
    async (pages) => {
      const sums = await page<Earnings>(pages, `/provider/earnings?${query}`);
      const list = async <T>(path: string) =>
        (await page<{ readonly data: readonly T[] }>(pages, `${path}?limit=${PAGE}`)).data;
      // A gateway without chains has no withdrawals.
      const withdrawals = sums.payout_terms.networks.length === 0 ? [] : await list<Withdrawal>('/withdrawals');
      return {
        ...sums,
        payouts: await list<Payout>('/provider/payouts'),
        withdrawals: withdrawals.filter(({ source }) => source === 'earnings'),
        refunds: await list<Refund>('/provider/refunds'),
      };
    },
    showEarnings,
  );
}

function showEarnings({
  available_micro_usdc: available,
  total_earned_micro_usdc: total,
  payout_terms: terms,
  by_day: days,
  payouts,
  withdrawals,
  refunds,
}: Earnings & {
  readonly payouts: readonly Payout[];
  readonly withdrawals: readonly Withdrawal[];
  readonly refunds: readonly Refund[];
}): string {
  const rows = days.flatMap(({ date, services }) => services.map((each) => ({ date, ...each })));
  const sum = rows.reduce((all, { earned_micro_usdc: micro }) => all + micro, 0);
  const parts = [
    facts(
      [
        ['to be paid', `${usd(available)} USD`],
        ['all earnings', `${usd(total)} USD`],
        ['payouts', terms.summary],
      ],
      paint,
    ),
    rows.length === 0
      ? 'No call was settled on these days.'
      : table(
          ['DAY', 'SERVICE', 'CALLS', 'USD', 'FLAGS'],
          [
            ...rows.map(({ date, service, requests, earned_micro_usdc: micro, flags }) => [
              date,
              service,
              String(requests),
              usd(micro),
              Object.entries(flags)
                .map(([flag, count]) => `${flag} ${count}`)
                .join(', '),
            ]),
            ['all', '', String(rows.reduce((all, { requests }) => all + requests, 0)), usd(sum), ''],
          ],
          paint,
          ['CALLS', 'USD'],
        ),
  ];
  if (withdrawals.length > 0)
    parts.push(
      table(
        ['WITHDRAWAL', 'USD', 'STATUS', 'NETWORK', 'TRANSACTION'],
        withdrawals.map((each) => [
          moment(each.created_at),
          each.amount_usd,
          each.reason === null ? each.status : `${each.status}: ${each.reason}`,
          each.network,
          each.transaction ?? '-',
        ]),
        paint,
        ['USD'],
      ),
    );
  if (payouts.length > 0)
    parts.push(
      table(
        ['PAYOUT', 'USD', 'REFERENCE', 'NOTE'],
        payouts.map((each) => [
          moment(each.paid_at),
          usd(each.amount_micro_usdc),
          each.reference,
          each.undone_at === null ? each.note : `taken back ${moment(each.undone_at)}`,
        ]),
        paint,
        ['USD'],
      ),
    );
  if (refunds.length > 0)
    parts.push(
      table(
        ['REFUND', 'USD', 'CALL', 'REASON'],
        refunds.map((each) => [moment(each.at), usd(-each.amount_micro_usdc), each.call, each.reason]),
        paint,
        ['USD'],
      ),
    );
  return parts.join('\n\n');
}

async function withdraw(flags: OwnFlags, [amount]: readonly string[]): Promise<void> {
  if (amount !== undefined) refuseBadAmount(amount);
  await report(
    flags,
    async (pages) => {
      const { available_micro_usdc: available, payout_terms: terms } = await page<Earnings>(
        pages,
        '/provider/earnings',
      );
      const network = networkOf(terms, flags.network);
      const whole = usd(available);
      if (available === 0) throw new CliError('There is nothing to withdraw: your earnings are 0 USD.');
      const reference = flags.reference ?? `cli-${randomUUID()}`;
      if (flags.reference === undefined)
        say(`If this breaks off, repeat it with --reference ${reference}: it is done once.`);
      const { data } = await pages.withdraw({ network, source: 'earnings', amount_usd: amount ?? whole }, reference);
      return data as Withdrawal;
    },
    ({ id, status: state, network, address, amount_usd: sum }) =>
      `${paint('green', '✓')} ${sum} USD go to ${address} on ${network}: ${state}, withdrawal ${id}.\nSee how it goes: ${OWN_NAME} earnings`,
  );
}

/** The chain to withdraw over. Throws CliError if the gateway pays over none, or over several and none is named. */
function networkOf({ networks, summary }: Terms, network: string | undefined): string {
  if (networks.length === 0) throw new CliError(`This gateway pays over no chain of your wallet. ${summary}`);
  if (network !== undefined && !networks.includes(network))
    throw new CliError(`--network is one of ${networks.join(', ')}, not ${network}`);
  if (network === undefined && networks.length > 1)
    throw new CliError(`This gateway pays over several chains. Name one: --network ${networks.join(' or --network ')}`);
  return network ?? networks[0]!;
}
