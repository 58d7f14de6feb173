import { Command } from 'commander';
import { accountPath, administer, isUsd, listAll, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { CliError } from './cli-error.ts';
import { OWN_NAME } from './own-name.ts';
import { referenceOr } from './reference.ts';
import { facts, painter, table, type Paint } from './terminal.ts';

interface Account {
  readonly id: string;
  readonly caip_account_id: string;
  readonly label: string;
  readonly created_at: string | null;
  readonly balance_micro_usdc: number;
  readonly locked_micro_usdc: number;
  readonly balance_usd: string;
  readonly total_credits_micro_usdc?: number;
  readonly total_usage_micro_usdc?: number;
}
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
  tollgate key create acme                       then: a key for its calls
  tollgate account credit eip155:8453:0x… 10     a wallet needs no account to be made, and no key`;

/** `tollgate account …`: consumers, their balances and credit. */
export function accountCommand(): Command {
  const paint = painter();
  return new Command('account')
    .summary('accounts: create, list, show, credit, debit')
    .description('Consumers and their money.')
    .addHelpText('after', HELP)
    .addCommand(createCommand(paint))
    .addCommand(listCommand(paint))
    .addCommand(showCommand(paint))
    .addCommand(creditCommand(paint))
    .addCommand(debitCommand(paint));
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
    return administer(flags, {
      create: true,
      run: async (admin) => (await admin.request('POST', '/accounts', body)).data as Account,
      show: (account) => `${describe(account, paint)}\n\nNext: ${OWN_NAME} account credit ${name} 10`,
    });
  });
}

function listCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('list').summary('all accounts with their balances').description('All accounts with their balances.'),
  ).action((flags: AdminFlags) =>
    administer(flags, {
      run: (admin) => listAll<Account>(admin, '/accounts'),
      show: (accounts) =>
        accounts.length === 0
          ? `No accounts yet. Make one: ${OWN_NAME} account create acme`
          : table(
              ['ACCOUNT', 'LABEL', 'USD', 'LOCKED', 'CREATED'],
              accounts.map((each) => [
                each.caip_account_id,
                each.label,
                each.balance_usd,
                usd(each.locked_micro_usdc),
                (each.created_at ?? '').slice(0, 10),
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
      .description('One account: balance and all-time figures.')
      .argument('<account>', 'its name or id'),
  ).action((name: string, flags: AdminFlags) =>
    administer(flags, {
      run: async (admin) => (await admin.request('GET', accountPath(name))).data as Account,
      show: (account) => describe(account, paint),
    }),
  );
}

function creditCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('credit')
      .summary('add money to an account')
      .description('Add money to an account: what was paid to you in another way.')
      .argument('<account>', 'its name or id; or a wallet in CAIP-10, such as eip155:8453:0x…')
      .argument('<usd>', 'amount in USD, at most 6 decimal places')
      .option('--reference <text>', 'what the payment is known by; the same reference is credited once'),
  ).action((name: string, amount: string, flags: AdminFlags & { reference?: string }) => {
    refuseBadAmount(amount);
    return administer(flags, {
      run: async (admin) => {
        const credit = { amount_usd: amount, reference: referenceOr(flags.reference) };
        return (await admin.request('POST', `${accountPath(name)}/credit`, credit)).data as Credit;
      },
      show: ({ account, amount_micro_usdc, reference, duplicate }) =>
        duplicate
          ? `${paint('yellow', 'Nothing was added:')} ${reference} was credited before. ${account.caip_account_id} has ${account.balance_usd} USD.`
          : `${paint('green', '✓')} ${usd(amount_micro_usdc)} USD to ${account.caip_account_id}, which now has ${account.balance_usd} USD. Reference: ${reference}`,
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
      .argument('<account>', 'its name or id')
      .argument('<usd>', 'amount in USD, at most 6 decimal places')
      .requiredOption('--reason <text>', 'why; the owner of the account reads it')
      .option('--reference <text>', 'what the correction is known by; the same reference is debited once'),
  ).action((name: string, amount: string, flags: AdminFlags & { reason: string; reference?: string }) => {
    refuseBadAmount(amount);
    return administer(flags, {
      run: async (admin) => {
        const debit = { amount_usd: amount, reason: flags.reason, reference: referenceOr(flags.reference) };
        return (await admin.request('POST', `${accountPath(name)}/debit`, debit)).data as Debit;
      },
      show: ({ account, amount_micro_usdc, reference, duplicate, ...balance }) =>
        duplicate
          ? `${paint('yellow', 'Nothing was taken:')} ${reference} was debited before. ${account.caip_account_id} has ${account.balance_usd} USD.`
          : `${paint('green', '✓')} ${usd(amount_micro_usdc)} USD taken from ${account.caip_account_id}, which had ${usd(balance.balance_before_micro_usdc)} USD and now has ${usd(balance.balance_after_micro_usdc)} USD. Reference: ${reference}`,
    });
  });
}

function refuseBadAmount(amount: string): void {
  if (!isUsd(amount) || Number(amount) === 0)
    throw new CliError(
      `<usd> is an amount in USD above 0 with at most 6 decimal places, such as 25 or 0.5, not ${amount}`,
    );
}

function describe(account: Account, paint: Paint): string {
  return facts(
    [
      ['account', account.caip_account_id],
      ['label', account.label || '-'],
      ['balance', `${account.balance_usd} USD`],
      ['locked', `${usd(account.locked_micro_usdc)} USD`],
      ...(account.total_credits_micro_usdc === undefined
        ? []
        : [['credited', `${usd(account.total_credits_micro_usdc)} USD`] as const]),
      ...(account.total_usage_micro_usdc === undefined
        ? []
        : [['used', `${usd(account.total_usage_micro_usdc)} USD`] as const]),
      ['created', account.created_at ?? 'by itself, as wallets and subjects of an issuer are'],
    ],
    paint,
  );
}

/** Micro-USD from an answer as USD, without trailing zeros. */
function usd(micro: number): string {
  return (micro / 1e6).toFixed(6).replace(/\.?0+$/, '');
}
