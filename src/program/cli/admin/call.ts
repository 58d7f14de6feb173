import { Command } from 'commander';
import { administer, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { findAccountId } from './names.ts';
import { facts, painter, type Paint, refuseBadAmount, usd } from '../terminal.ts';

interface Call {
  readonly id: string;
  readonly state: string;
  readonly outcome: string | null;
  readonly failed: boolean;
  readonly account: string;
  readonly api_key: string | null;
  readonly request_id: string | null;
  readonly primitive: string | null;
  readonly model: string | null;
  readonly service: string | null;
  readonly tool: string | null;
  readonly provider: string | null;
  readonly provider_name: string | null;
  readonly usage_details: Readonly<Record<string, number>>;
  readonly cost_micro_usdc: number;
  readonly fee_micro_usdc: number;
  readonly shortfall_micro_usdc: number;
  readonly run_cost: number;
  readonly error: string | null;
  readonly finish_reason: string | null;
  /** Absent from an older gateway, as are the next two. */
  readonly error_code?: string | null;
  readonly status?: number | null;
  readonly failed_attempts?: readonly {
    readonly provider: string;
    readonly service: string;
    readonly error: string;
    readonly blame: string;
    readonly duration_ms: number;
  }[];
  readonly flags: readonly string[];
  /** Absent from an older gateway. */
  readonly claims?: readonly Claim[];
  readonly parent: string | null;
  readonly created_at: string;
  readonly resolved_at: string | null;
  readonly entries: readonly { readonly type: string; readonly amount_usd: string }[];
  /** Absent from an older gateway. */
  readonly refund?: { readonly amount_usd: string; readonly reason: string; readonly at: string } | null;
  readonly children: readonly object[];
}

interface Claim {
  readonly meter: string;
  readonly claimed: number | null;
  readonly most?: number;
  readonly least?: number;
}

interface Refund {
  readonly call: string;
  readonly amount_usd: string;
  readonly from_provider_micro_usdc: number;
  /** Absent from an older gateway. */
  readonly is_own_provider?: boolean;
  readonly amount_micro_usdc: number;
  readonly reason: string;
  readonly at: string;
  readonly duplicate: boolean;
}

interface CallFlags extends AdminFlags {
  readonly account?: string;
}

const HELP = `
A call has its own id: the id of its answer, or x-generation-id. By x-request-id it is found only with --account, among the
last 10,000 calls of that account; the log has both ids in the line of a call.

Examples:
  tollgate call gen-7GXCaCPA7p1e000000
  tollgate call req-a0ca221e31aa1bd400000007 --account acme
  tollgate call end gen-7GXCaCPA7p1e000000 --reason "it hung"
  tollgate call refund gen-7GXCaCPA7p1e000000 --reason "the answer was cut"`;

/** The entries of the books in words. A refund of the operator is no entry of the call: it comes later. */
const ENTRY_NAMES: Readonly<Record<string, string>> = {
  lock: 'locked',
  draw: 'drawn',
  settle: 'settled',
  lend: 'lent',
  refund: 'released',
};

export function callCommand(): Command {
  return (
    withAdminOptions(
      new Command('call')
        .summary('one call: who, what, when, provider, money, error; end or refund one')
        .description('Show a call of any account.')
        .argument('<id>', 'its id; with --account also the id of its request')
        .option('--account <account>', 'name, id or label of the account that made it'),
    )
      .addHelpText('after', HELP)
      // All have the same options, and those after `end` or `refund` are its own.
      .enablePositionalOptions()
      .addCommand(endCommand())
      .addCommand(refundCommand())
      .action((id: string, { account, ...flags }: CallFlags) => {
        return administer(flags, {
          async run(admin) {
            const query =
              account === undefined ? '' : `?account=${encodeURIComponent(await findAccountId(admin, account))}`;
            return (await admin.request('GET', `/calls/${encodeURIComponent(id)}${query}`)).data as Call;
          },
          show: (call) => describe(call, painter()),
        });
      })
  );
}

function endCommand(): Command {
  return withAdminOptions(
    new Command('end')
      .summary('end a call that runs')
      .description(
        'End a running call of any account, at whichever gateway of the database it runs, and the task, video or batch that it has begun. Its client gets an error, and pays nothing.',
      )
      .argument('<id>', 'its id')
      .option('--reason <text>', 'why, for the client of the call'),
  ).action((id: string, { reason, ...flags }: AdminFlags & { readonly reason?: string }) =>
    administer(flags, {
      run: async (admin) =>
        (await admin.request('POST', `/calls/${encodeURIComponent(id)}/end`, reason === undefined ? {} : { reason }))
          .data as Call,
      show: (call) => describe(call, painter()),
    }),
  );
}

function refundCommand(): Command {
  return withAdminOptions(
    new Command('refund')
      .summary('give back what a call cost')
      .description(
        'Give back what a call cost to the account that paid it, once. Its provider bears its share, if its earnings suffice; otherwise you do.',
      )
      .argument('<id>', 'its id')
      .requiredOption('--reason <text>', 'why, for the consumer and the provider')
      .option('--usd <amount>', 'only this part of what was charged'),
  ).action((id: string, { reason, usd: amount, ...flags }: AdminFlags & { readonly reason: string; usd?: string }) => {
    if (amount !== undefined) refuseBadAmount(amount, '--usd');
    const body = { reason, ...(amount === undefined ? {} : { amount_usd: amount }) };
    return administer(flags, {
      run: async (admin) =>
        (await admin.request('POST', `/calls/${encodeURIComponent(id)}/refund`, body)).data as Refund,
      show: (refund) => describeRefund(refund, painter()),
    });
  });
}

function describeRefund(refund: Refund, paint: Paint): string {
  const own = refund.amount_micro_usdc - refund.from_provider_micro_usdc;
  return facts(
    [
      ['call', refund.call],
      [refund.duplicate ? 'was refunded' : 'refunded', `${refund.amount_usd} USD`],
      ['at', refund.at],
      ['reason', refund.reason],
      ...(refund.is_own_provider
        ? ([['from the operator', `${refund.amount_usd} USD`]] as const)
        : ([
            ['from provider', `${usd(refund.from_provider_micro_usdc)} USD`],
            ['from you', `${usd(own)} USD`],
          ] as const)),
    ],
    paint,
  );
}

function describe(call: Call, paint: Paint): string {
  const known = (name: string, value: string | null): readonly (readonly [string, string])[] =>
    value === null || value === '' ? [] : [[name, value]];
  const served = call.model === call.service ? null : call.model;
  const provider = [call.provider_name, call.provider].filter((part) => part !== null).join(', ');
  const usage = Object.entries(call.usage_details).map(([meter, count]) => `${count} ${meter}`);
  const shortfall = call.shortfall_micro_usdc === 0 ? null : `${usd(call.shortfall_micro_usdc)} USD`;
  return facts(
    [
      ['call', call.id],
      ...known('request', call.request_id),
      ['account', call.account],
      ...known('key', call.api_key?.slice(0, 12) ?? null),
      ['called', [call.primitive, call.service, call.tool].filter((part) => part !== null).join(' ')],
      ...known('served', served),
      ...known('provider', provider),
      ['began', call.created_at],
      ['ended', call.resolved_at ?? 'not yet'],
      ['state', stateOf(call)],
      ...known('finish', call.finish_reason),
      ...known('status', call.status == null ? null : `${call.status} ${call.error_code ?? 'ok'}`),
      ...known('error', call.error),
      ...(call.failed_attempts ?? []).map((failed) => ['failed', attemptIn(failed)] as const),
      ...known('flags', call.flags.join(', ')),
      ...(call.claims ?? []).map((claim) => ['claimed', claimIn(claim)] as const),
      ...known('usage', usage.join(', ')),
      ...call.entries.map(({ type, amount_usd: amount }) => [ENTRY_NAMES[type] ?? type, `${amount} USD`] as const),
      ['charged', `${usd(call.cost_micro_usdc)} USD, of which the fee is ${usd(call.fee_micro_usdc)} USD`],
      ...known('not paid', shortfall),
      ...known(
        'refunded',
        call.refund ? `${call.refund.amount_usd} USD on ${call.refund.at}: ${call.refund.reason}` : null,
      ),
      ...known('under', call.parent),
      ...(call.children.length === 0
        ? []
        : [['with others', `${call.run_cost} USD with the calls under it, which --json shows`] as const]),
    ],
    paint,
  );
}

/** With the outcome, of which a failed call may have another: `free`, for an answer that reports a failure. */
const stateOf = ({ state, outcome, failed }: Call): string =>
  [state, outcome, failed && outcome !== 'failed' ? 'failed' : null].filter((part) => part !== null).join(', ');

const claimIn = ({ meter, claimed, most, least }: Claim) =>
  `${claimed === null ? `a ${meter} that is no number` : `${claimed} ${meter}`}, ${most === undefined ? `at least ${least} counted` : `at most ${most} possible`}`;

type ListedAttempt = NonNullable<Call['failed_attempts']>[number];

const attemptIn = ({ provider, service, error, blame, duration_ms: ms }: ListedAttempt) =>
  `${provider} (${service}) after ${(ms / 1000).toFixed(1)} s: ${error}${blame === 'provider' ? '' : `, counted against ${blame}`}`;
