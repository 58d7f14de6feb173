import { Command, Option } from 'commander';
import {
  administer,
  listAll,
  RefusedRequest,
  withAdminOptions,
  type AdminClient,
  type AdminFlags,
  referenceOr,
} from './admin-client.ts';
import { ACCOUNT, accountPath, findAccountPath, PAID_ACCOUNT } from './names.ts';
import { movementsCommand, notesCommand, refusalsCommand } from './account-records.ts';
import { CliError, painter, table, type Paint, facts, usd, refuseBadAmount } from '../terminal.ts';
import { OWN_NAME } from '../command-line.ts';

interface Credit {
  readonly account: Account;
  readonly amount_micro_usdc: number;
  readonly reference: string;
  readonly duplicate: boolean;
}
interface Debit extends Credit {
  readonly balance_before_micro_usdc: number;
  readonly balance_after_micro_usdc: number;
}

const HELP = `
Examples:
  tollgate account create acme --label "Acme Ltd"
  tollgate account credit acme 25 --reference invoice-17
  tollgate account debit acme 450 --reason "500 were credited instead of 50"
  tollgate account show acme
  tollgate account movements acme                credits, debits, refunds
  tollgate account refusals acme                 why its requests get 402, 403 or 429
  tollgate account notes acme --add "asked for a higher rate"
  tollgate account freeze acme --reason "stolen key"    then: unfreeze, or close
  tollgate key create acme                       then: a key for its calls
  tollgate account credit eip155:8453:0x… 10     a wallet needs no account to be made, and no key`;

export function accountCommand(): Command {
  const paint = painter();
  return new Command('account')
    .summary('accounts: create, list, show, notes, credit, debit, rename, freeze, close')
    .description('Consumers and their money.')
    .addHelpText('after', HELP)
    .addCommand(createCommand(paint))
    .addCommand(listCommand(paint))
    .addCommand(showCommand(paint))
    .addCommand(movementsCommand())
    .addCommand(notesCommand())
    .addCommand(refusalsCommand())
    .addCommand(creditCommand(paint))
    .addCommand(debitCommand(paint))
    .addCommand(renameCommand(paint))
    .addCommand(
      stateCommand(paint, {
        name: 'freeze',
        summary: 'stop new calls and withdrawals of an account',
        description:
          'Stop new calls and withdrawals of an account, within a second on all gateways. Running calls go on to their end. Deposits arrive.',
      }),
    )
    .addCommand(
      stateCommand(paint, {
        name: 'unfreeze',
        summary: 'let a frozen account make calls again',
        description: 'Let a frozen account make calls again, with the same keys.',
      }),
    )
    .addCommand(closeCommand(paint))
    .addCommand(
      stateCommand(paint, {
        name: 'reopen',
        summary: 'open a closed account again',
        description: 'Open a closed account again. Its former keys stay deleted.',
      }),
    );
}

function createCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('create')
      .summary('make an account')
      .description('Make an account. One that exists is shown as it is.')
      .argument('<name>', 'small letters, digits and hyphens; or a wallet in CAIP-10, such as eip155:8453:0x…')
      .option('--label <text>', 'what to call it'),
  ).action((name: string, flags: AdminFlags & { label?: string }) => {
    const { label } = flags;
    // Checked before anything is opened, because a wrong name would leave a new database behind.
    accountPath(name);
    const body = { ...(name.includes(':') ? { account: name } : { name }), ...(label === undefined ? {} : { label }) };
    let isNew = true;
    return administer(flags, {
      create: true,
      async run(admin) {
        const { status, data } = await admin.request('POST', '/accounts', body);
        isNew = status === 201;
        return data as Account;
      },
      show(account) {
        const next = isNew ? `Next: ${OWN_NAME} account credit ${name} 10` : existed(account, label, name);
        return `${describe(account, paint)}\n\n${isNew ? next : paint('yellow', next)}`;
      },
    });
  });
}

function listCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('list')
      .summary('all accounts with their balances')
      .description('All accounts with their balances.')
      .addOption(new Option('--state <state>', 'only accounts in this state').choices(['open', 'frozen', 'closed'])),
  ).action((flags: AdminFlags & { state?: string }) =>
    administer(flags, {
      run: (admin) => listAll<Account>(admin, '/accounts', flags.state === undefined ? {} : { state: flags.state }),
      show: (accounts) =>
        accounts.length === 0
          ? flags.state === undefined
            ? `No accounts yet. Make one: ${OWN_NAME} account create acme`
            : `No account is ${flags.state}.`
          : table(
              ['ACCOUNT', 'LABEL', 'USD', 'LOCKED', 'CREATED', 'STATE'],
              accounts.map((each) => [
                each.caip_account_id,
                each.label,
                each.balance_usd,
                usd(each.locked_micro_usdc),
                (each.created_at ?? '').slice(0, 10),
                each.state,
              ]),
              paint,
              ['USD', 'LOCKED'],
            ),
    }),
  );
}

function showCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('show')
      .summary('one account')
      .description('One account: its balance, and what came in and went out since it was made.')
      .argument(...ACCOUNT),
  ).action((name: string, flags: AdminFlags) =>
    administer(flags, {
      run: (admin) => findAccount(admin, name),
      show: (account) => describe(account, paint),
    }),
  );
}

function creditCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('credit')
      .summary('add money to an account')
      .description('Add money to an account: what was paid to you in another way.')
      .argument(PAID_ACCOUNT[0], `${PAID_ACCOUNT[1]}; or a wallet in CAIP-10, such as eip155:8453:0x…`)
      .argument('<usd>', 'amount in USD, at most 6 decimal places')
      .option('--reference <text>', 'what the payment is known by; the same reference is credited once'),
  ).action((name: string, amount: string, flags: AdminFlags & { reference?: string }) => {
    refuseBadAmount(amount);
    const path = accountPath(name);
    return administer(flags, {
      run: async (admin) => {
        const credit = { amount_usd: amount, reference: referenceOr(flags.reference) };
        return (await admin.request('POST', `${path}/credit`, credit)).data as Credit;
      },
      show: ({ account, amount_micro_usdc, reference, duplicate }) =>
        duplicate
          ? `${paint('yellow', 'Nothing was added:')} ${reference} was credited before. ${account.caip_account_id} has ${account.balance_usd} USD.`
          : `${paint('green', '✓')} ${usd(amount_micro_usdc)} USD to ${account.caip_account_id}, which now has ${account.balance_usd} USD. Reference: ${reference}${paint('yellow', stopped(account))}`,
    });
  });
}

function debitCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('debit')
      .summary('take money from an account')
      .description(
        'Take money from an account, for example because too much was credited. Money that running calls have locked cannot be taken.',
      )
      .argument(...PAID_ACCOUNT)
      .argument('<usd>', 'amount in USD, at most 6 decimal places')
      .requiredOption('--reason <text>', 'why; the owner of the account reads it')
      .option('--reference <text>', 'what the correction is known by; the same reference is debited once'),
  ).action((name: string, amount: string, flags: AdminFlags & { reason: string; reference?: string }) => {
    refuseBadAmount(amount);
    const path = accountPath(name);
    return administer(flags, {
      run: async (admin) => {
        const debit = { amount_usd: amount, reason: flags.reason, reference: referenceOr(flags.reference) };
        return (await admin.request('POST', `${path}/debit`, debit)).data as Debit;
      },
      show: ({ account, amount_micro_usdc, reference, duplicate, ...balance }) =>
        duplicate
          ? `${paint('yellow', 'Nothing was taken:')} ${reference} was debited before. ${account.caip_account_id} has ${account.balance_usd} USD.`
          : `${paint('green', '✓')} ${usd(amount_micro_usdc)} USD taken from ${account.caip_account_id}, which had ${usd(balance.balance_before_micro_usdc)} USD and now has ${usd(balance.balance_after_micro_usdc)} USD. Reference: ${reference}`,
    });
  });
}

function renameCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('rename')
      .summary('change the label of an account')
      .description('Change the label of an account. Its id stays, because keys, receipts and the books refer to it.')
      .argument(...ACCOUNT)
      .argument('<label>', 'what to call it; "" takes its label away, also out of admin-log'),
  ).action((name: string, label: string, flags: AdminFlags) =>
    administer(flags, {
      run: async (admin) =>
        (await admin.request('PATCH', await findAccountPath(admin, name), { label })).data as Account,
      show: (account) => describe(account, paint),
    }),
  );
}

function stateCommand(
  paint: Paint,
  { name, summary, description }: { readonly name: string; readonly summary: string; readonly description: string },
): Command {
  return withAdminOptions(
    new Command(name)
      .summary(summary)
      .description(description)
      .argument(...ACCOUNT)
      .requiredOption('--reason <text>', 'why; the owner of the account does not see it'),
  ).action((account: string, flags: AdminFlags & { reason: string }) => {
    let unseen = false;
    return administer(flags, {
      async run(admin) {
        const path = await findAccountPath(admin, account);
        unseen = isUnseen((await admin.request('GET', path)).data as Account);
        await admin.request('POST', `${path}/${name}`, { reason: flags.reason });
        // The answer of a change has no sums, and not what the account earns.
        return (await admin.request('GET', path)).data as Account;
      },
      show(changed) {
        const same = changed.state_reason === flags.reason.trim();
        const note = `It was ${changed.state} before. The reason of that stays.`;
        const check = unseen ? `\n\n${paint('yellow', `This account was never seen here. Check its id.`)}` : '';
        return `${describe(changed, paint)}${check}${same ? '' : `\n\n${paint('yellow', note)}`}`;
      },
    });
  });
}

/** A wallet needs no account to be made, so a mistyped one looks like one that nobody has used. */
const isUnseen = ({ created_at: createdAt, total_credits_micro_usdc: credits, provider }: Account): boolean =>
  createdAt === null && credits === 0 && (provider ?? null) === null;

interface CloseFlags extends AdminFlags {
  readonly reason: string;
  readonly paidOut?: string;
  readonly writeOff?: string;
  readonly reference?: string;
}

function closeCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('close')
      .summary('end a frozen account')
      .description(
        'End a frozen account: delete its keys, and refuse all its requests. If it has money, say with the exact amount whether you pay it out or write it off.',
      )
      .argument(...ACCOUNT)
      .requiredOption('--reason <text>', 'why; the owner of the account does not see it')
      .addOption(
        new Option('--paid-out <usd>', 'what is left, which you pay outside of the gateway').conflicts('writeOff'),
      )
      .option('--write-off <usd>', 'what is left, which you keep')
      .option('--reference <text>', 'what the payment or the write-off is known by; the same reference is booked once'),
  ).action((name: string, flags: CloseFlags) => {
    const outcome = flags.paidOut ?? flags.writeOff;
    if (outcome !== undefined) refuseBadAmount(outcome);
    return administer(flags, {
      run: async (admin) => {
        const remainder =
          outcome === undefined
            ? {}
            : {
                remainder: flags.paidOut === undefined ? 'written_off' : 'paid_out',
                amount_usd: outcome,
                reference: referenceOr(flags.reference),
              };
        const body = { reason: flags.reason, ...remainder };
        const path = await findAccountPath(admin, name);
        try {
          await admin.request('POST', `${path}/close`, body);
          // The answer of a close has no sums.
          return (await admin.request('GET', path)).data as Account;
        } catch (error) {
          throw error instanceof RefusedRequest ? await refusedClose(error, admin, { path, name }) : error;
        }
      },
      show: (account) => describe(account, paint),
    });
  });
}

/** The refusal of a close in the words of this command. */
async function refusedClose(
  refusal: RefusedRequest,
  admin: AdminClient,
  { path, name }: { readonly path: string; readonly name: string },
): Promise<CliError> {
  const { status, param, message } = refusal;
  if (status === 409 && param === 'reference') return new CliError(`${message}. Give another --reference.`);
  if (status !== 422) return refusal;
  const account = (await admin.request('GET', path)).data as Account;
  if (account.state === 'open')
    return new CliError(
      `An open account cannot be closed. Freeze it first, so that no new call begins: ${OWN_NAME} account freeze ${name} --reason "…"`,
    );
  const seller = account.provider ?? null;
  if (seller?.connected) return new CliError(`${message}: ${OWN_NAME} provider ban ${seller.provider} --reason "…"`);
  if (seller !== null && seller.earnings_usd !== '0')
    return new CliError(
      `${message}: ${OWN_NAME} provider pay ${seller.provider} --amount ${seller.earnings_usd} --reference …`,
    );
  if (param === null) return refusal;
  const balance = account.balance_usd;
  return new CliError(
    `${account.caip_account_id} has ${balance} USD. Say what becomes of exactly this amount: --paid-out ${balance} if you pay it to the customer outside of the gateway, or --write-off ${balance} if you keep it.`,
  );
}

/** An account with its sums. */
const findAccount = async (admin: AdminClient, name: string): Promise<Account> =>
  (await admin.request('GET', await findAccountPath(admin, name))).data as Account;

/** An account that exists is not changed by its creation. */
function existed(account: Account, label: string | undefined, name: string): string {
  if (label === undefined || label === account.label) return 'The account exists already. Nothing was changed.';
  return `The account exists already, and keeps its label. Change it: ${OWN_NAME} account rename ${name} ${JSON.stringify(label)}`;
}

const stopped = ({ state }: Account): string => (state === 'open' ? '' : ` The account is ${state}.`);

interface Account {
  readonly id: string;
  readonly caip_account_id: string;
  readonly label: string;
  readonly created_at: string | null;
  readonly balance_micro_usdc: number;
  readonly locked_micro_usdc: number;
  readonly balance_usd: string;
  readonly state: 'open' | 'frozen' | 'closed';
  readonly state_reason: string;
  readonly state_since: string | null;
  readonly total_credits_micro_usdc?: number;
  readonly total_usage_micro_usdc?: number;
  readonly movements_micro_usdc?: Readonly<Record<MovementSum, number>>;
  readonly provider?: Seller | null;
}
interface Seller {
  readonly provider: string;
  readonly connected: boolean;
  readonly banned: boolean;
  readonly earnings_usd: string;
}
type MovementSum =
  | 'credited'
  | 'debited'
  | 'refunded'
  | 'deposited'
  | 'withdrawn'
  | 'paid_out'
  | 'written_off'
  | 'other';

function describe(account: Account, paint: Paint): string {
  return facts(
    [
      ['account', account.caip_account_id],
      ['label', account.label || '-'],
      ['balance', `${account.balance_usd} USD`],
      ['locked', `${usd(account.locked_micro_usdc)} USD`],
      ['state', account.state_reason === '' ? account.state : `${account.state}: ${account.state_reason}`],
      ...sellerOf(account),
      ...movementsOf(account),
      ...(account.total_usage_micro_usdc === undefined
        ? []
        : [['used', `${usd(account.total_usage_micro_usdc)} USD`] as const]),
      ['created', account.created_at ?? 'by itself, as wallets and subjects of an issuer are'],
    ],
    paint,
  );
}

function sellerOf({ provider: seller = null }: Account): readonly (readonly [string, string])[] {
  if (seller === null) return [];
  const state = seller.banned ? 'banned' : seller.connected ? 'connected: its offers are on sale' : 'away';
  return [
    ['provider', `${seller.provider}, ${state}`],
    ['earnings', `${seller.earnings_usd} USD to be paid`],
  ];
}

const WORDS: readonly (readonly [MovementSum, string])[] = [
  ['credited', 'credited'],
  ['debited', 'debited'],
  ['refunded', 'refunded'],
  ['deposited', 'deposited'],
  ['withdrawn', 'withdrawn'],
  ['paid_out', 'paid out'],
  ['written_off', 'written off'],
  ['other', 'other'],
];

/** Credits and debits always, other movements if there were any. An older gateway tells only their sum. */
function movementsOf(account: Account): readonly (readonly [string, string])[] {
  const { movements_micro_usdc: sums, total_credits_micro_usdc: net } = account;
  if (sums === undefined) return net === undefined ? [] : [['paid in', `${usd(net)} USD, less what was taken again`]];
  return WORDS.flatMap(([kind, word], index) =>
    index < 2 || (sums[kind] ?? 0) !== 0 ? [[word, `${usd(sums[kind])} USD`] as const] : [],
  );
}
