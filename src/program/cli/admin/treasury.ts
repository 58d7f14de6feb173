import { Command } from 'commander';
import { administer, withAdminOptions, type AdminClient, type AdminFlags, referenceOr } from './admin-client.ts';
import { OWN_NAME } from '../command-line.ts';
import { facts, painter, table, type Paint } from '../terminal.ts';

interface ListedAct {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly network: string | null;
  readonly amount_usd: string;
  readonly borne_by: string | null;
  readonly to_network: string | null;
  readonly address: string | null;
  readonly sender: string | null;
  readonly deposit: string | null;
  readonly fee_usd: string | null;
  readonly reference: string;
  readonly reason: string | null;
  readonly created_at: string;
}

interface ActFlags extends AdminFlags {
  readonly reference?: string;
}

const HELP = `
These commands need a gateway that runs with its chains.

Examples:
  tollgate treasury list
  tollgate treasury write-off eip155:8453 25 --reference incident-4      the books take what the treasury holds
  tollgate treasury make-good 25 --with fees --reference incident-4-paid
  tollgate treasury move eip155:8453 eip155:1 500 --to 0x… --sender 0x… --fee-max 1 --reference m1
  tollgate treasury cancel <id>                                         as long as nothing is signed or booked
  tollgate treasury suspense                                            what came in and is nobody's
  tollgate treasury arrived <id of the move> <id of the deposit>`;

export function treasuryCommand(): Command {
  const paint = painter();
  return new Command('treasury')
    .summary('treasuries: book a loss, make it good, move money')
    .description('What the operator does with the treasuries of the chains.')
    .addHelpText('after', HELP)
    .addCommand(listCommand(paint))
    .addCommand(writeOffCommand(paint))
    .addCommand(makeGoodCommand(paint))
    .addCommand(moveCommand(paint))
    .addCommand(cancelCommand(paint))
    .addCommand(suspenseCommand(paint))
    .addCommand(arrivedCommand(paint));
}

function act(flags: ActFlags, path: string, body: object, paint: Paint): Promise<void> {
  return tell(flags, path, () => ({ ...body, reference: referenceOr(flags.reference) }), paint);
}

function tell(flags: AdminFlags, path: string, bodyOf: () => object | undefined, paint: Paint): Promise<void> {
  return administer(flags, {
    run: async (admin) => (await admin.request('POST', `/treasury/${path}`, bodyOf())).data as ListedAct,
    show: (done) => describe(done, paint),
  });
}

const REFERENCE = ['--reference <text>', 'your name of it; the same reference is done once'] as const;

async function allOf<T>(admin: AdminClient, path: string): Promise<readonly T[]> {
  const all: T[] = [];
  for (let place = ''; ;) {
    const { data, next } = (await admin.request('GET', `${path}?limit=100${place}`)) as unknown as {
      readonly data: readonly T[];
      readonly next: string | null;
    };
    all.push(...data);
    if (next === null) return all;
    place = `&before=${encodeURIComponent(next)}`;
  }
}

function listCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('list').summary('what was done, the newest first').description('What was done with treasuries.'),
  ).action((flags: AdminFlags) =>
    administer(flags, {
      run: (admin) => allOf<ListedAct>(admin, '/treasury/acts'),
      show: (acts) =>
        acts.length === 0
          ? 'Nothing was done with the treasuries yet.'
          : table(
              ['WHEN', 'KIND', 'STATUS', 'NETWORK', 'USD', 'REFERENCE', 'ID'],
              acts.map((each) => [
                each.created_at.slice(0, 16),
                each.kind,
                each.status,
                each.network ?? '-',
                each.amount_usd,
                each.reference,
                each.id,
              ]),
              paint,
              ['USD'],
            ),
    }),
  );
}

function writeOffCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('write-off')
      .summary('book a difference between a treasury and the books')
      .description('Books the difference that stopped withdrawals. They go on then.')
      .argument('<network>', 'such as eip155:8453')
      .argument('<usd>', 'the difference, as tollgate audit --chain shows it')
      .option('--by <whom>', 'who bears it: losses (to be made good later, the default), fees or operator')
      .option('--more', 'the treasury holds more than the books say: the difference is yours')
      .option(...REFERENCE),
  ).action((network: string, amount: string, flags: ActFlags & { by?: string; more?: boolean }) =>
    act(
      flags,
      'differences',
      {
        network,
        amount_usd: amount,
        more: flags.more ?? false,
        ...(flags.by === undefined ? {} : { borne_by: flags.by }),
      },
      paint,
    ),
  );
}

function makeGoodCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('make-good')
      .summary('pay for losses')
      .description('Pays for losses with fees that you earned, or with money that you paid in.')
      .argument('<usd>', 'how much of them')
      .requiredOption('--with <source>', 'fees or operator')
      .option(...REFERENCE),
  ).action((amount: string, flags: ActFlags & { with: string }) =>
    act(flags, 'losses/made-good', { amount_usd: amount, paid_by: flags.with }, paint),
  );
}

interface MoveFlags extends ActFlags {
  readonly to: string;
  readonly sender?: string;
  readonly feeMax?: string;
}

function moveCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('move')
      .summary('send money of a treasury on its way to another one')
      .description('Sends money to an address of yours, from which you bring it to another treasury.')
      .argument('<from>', 'network that it leaves')
      .argument('<network>', 'network where it will arrive')
      .argument('<usd>', 'how much')
      .requiredOption('--to <address>', 'one of move_to of the first network')
      .option('--sender <address>', 'address that it comes from on the other network')
      .option('--fee-max <usd>', 'what may be missing of it when it arrives', '0')
      .option(...REFERENCE),
  ).action((network: string, to: string, amount: string, flags: MoveFlags) =>
    act(
      flags,
      'moves',
      {
        network,
        to_network: to,
        amount_usd: amount,
        address: flags.to,
        ...(flags.sender === undefined ? {} : { sender: flags.sender }),
        fee_max_usd: flags.feeMax ?? '0',
      },
      paint,
    ),
  );
}

function cancelCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('cancel')
      .summary('take back a move that is not signed yet, or an act that waits')
      .description(
        'Takes back a move, as long as its treasury has not signed it, or another act, as long as it is not booked.',
      )
      .argument('<act>', 'its id'),
  ).action((id: string, flags: AdminFlags) =>
    tell(flags, `acts/${encodeURIComponent(id)}/cancel`, () => undefined, paint),
  );
}

interface Deposit {
  readonly id: string;
  readonly network: string;
  readonly payer: string;
  readonly credited_usd: string | null;
  readonly created_at: string;
}

function suspenseCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('suspense')
      .summary("deposits that are nobody's yet, the newest first")
      .description("Lists the deposits in suspense: final on their chain, and nobody's yet."),
  ).action((flags: AdminFlags) =>
    administer(flags, {
      run: (admin) => allOf<Deposit>(admin, '/deposits'),
      show: (deposits) =>
        deposits.length === 0
          ? 'Nothing is in suspense.'
          : table(
              ['WHEN', 'NETWORK', 'USD', 'FROM', 'ID'],
              deposits.map((each) => [
                each.created_at.slice(0, 16),
                each.network,
                each.credited_usd ?? '-',
                each.payer,
                each.id,
              ]),
              paint,
              ['USD'],
            ),
    }),
  );
}

function arrivedCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('arrived')
      .summary('say as which deposit a move arrived')
      .description('Names the deposit in suspense that is the money of a move.')
      .argument('<move>', 'its id')
      .argument('<deposit>', 'id of the deposit'),
  ).action((id: string, deposit: string, flags: AdminFlags) =>
    tell(flags, `moves/${encodeURIComponent(id)}/arrival`, () => ({ deposit }), paint),
  );
}

function describe(act: ListedAct, paint: Paint): string {
  const { id, kind, status, network, amount_usd: amount, to_network: to, reference, reason, sender, deposit } = act;
  const text = facts(
    [
      ['id', id],
      ['kind', kind],
      ['status', status],
      ...(network === null ? [] : [['network', to === null ? network : `${network} to ${to}`] as const]),
      ['amount', `${amount} USD`],
      ...(act.borne_by === null ? [] : [['borne by', act.borne_by] as const]),
      ...(act.fee_usd === null ? [] : [['fee', `${act.fee_usd} USD`] as const]),
      ['reference', reference],
      ...(reason === null ? [] : [['why', reason] as const]),
    ],
    paint,
  );
  if (status === 'done' || status === 'refused') return text;
  const isNamed = kind !== 'move' || sender !== null || deposit !== null;
  return isNamed
    ? `${text}\n\nIt goes on by itself. See it with: ${OWN_NAME} treasury list`
    : `${text}\n\nOnce the money has come, name its deposit with: ${OWN_NAME} treasury arrived ${id} <deposit>`;
}
