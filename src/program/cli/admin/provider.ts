import { Command, Option } from 'commander';
import { administer, listAll, withAdminOptions, type AdminFlags, referenceOr } from './admin-client.ts';
import { findProviderPath, PROVIDER } from './names.ts';
import { OWN_NAME } from '../command-line.ts';
import { type Offer, offerTable, RANGES } from './status.ts';
import { type FailedCall, failureTable, painter, table, type Paint, refuseBadAmount } from '../terminal.ts';

interface Provider {
  readonly provider: string;
  readonly account: string | null;
  readonly name: string | null;
  readonly connected: boolean;
  readonly earnings_usd: string;
  readonly banned: { readonly reason: string; readonly at: string } | null;
}
interface CallsNow {
  readonly provider: string;
  readonly service: string;
  readonly in_flight: number;
  readonly waiting: number;
  readonly oldest_wait_seconds: number;
}
interface Ban {
  readonly provider: string;
  readonly changed: boolean;
  /** Absent from an older gateway. */
  readonly seen?: boolean;
  readonly earnings_usd: string;
}
interface Booked {
  readonly provider: string;
  readonly reference: string;
  readonly amount_micro_usdc: number;
  readonly duplicate: boolean;
  readonly earnings_usd: string;
}
interface ListedPayout {
  readonly reference: string;
  readonly amount_usd: string;
  readonly note: string;
  readonly paid_at: string;
  readonly undone_at: string | null;
  readonly undone_reason: string | null;
}

const HELP = `
A provider is named by its name, by its public key, or by its account: a wallet in CAIP-10, the name of a local account.

Examples:
  tollgate provider list
  tollgate provider show eip155:8453:0x…         its offers, errors and earnings
  tollgate provider calls                       what waits for whom now
  tollgate provider failures "Acme AI"           why its calls failed, in its own words
  tollgate provider ban eip155:8453:0x… --reason "answers with another model than it names"
  tollgate provider unban eip155:8453:0x…
  tollgate provider pay eip155:8453:0x… --amount 25 --reference SEPA-117     you paid it by bank transfer
  tollgate provider payouts eip155:8453:0x…
  tollgate provider undo eip155:8453:0x… --reference SEPA-117 --reason "the bank returned it"`;

export function providerCommand(): Command {
  const paint = painter();
  return new Command('provider')
    .summary('providers: list, ban, book what you paid them')
    .description('Providers that sell through this gateway.')
    .addHelpText('after', HELP)
    .addCommand(listCommand(paint))
    .addCommand(showCommand(paint))
    .addCommand(callsCommand(paint))
    .addCommand(failuresCommand(paint))
    .addCommand(banCommand(paint))
    .addCommand(unbanCommand(paint))
    .addCommand(payCommand(paint))
    .addCommand(payoutsCommand(paint))
    .addCommand(undoCommand(paint));
}

function listCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('list')
      .summary('connected, former and banned providers')
      .description('Providers that ever registered services here, and those that are banned.'),
  ).action((flags: AdminFlags) =>
    administer(flags, {
      run: (admin) => listAll<Provider>(admin, '/providers'),
      show: (providers) =>
        providers.length === 0
          ? 'No provider has registered services yet.'
          : table(
              ['PROVIDER', 'NAME', 'STATE', 'TO BE PAID, USD', 'WHY'],
              providers.map((each) => [
                each.provider,
                each.name ?? '-',
                each.banned === null ? (each.connected ? 'connected' : 'away') : 'banned',
                each.earnings_usd,
                each.banned?.reason ?? '-',
              ]),
              paint,
              ['TO BE PAID, USD'],
            ),
    }),
  );
}

interface ShownProvider {
  readonly provider: string;
  readonly name: string | null;
  readonly own: boolean;
  readonly connected: boolean | null;
  readonly banned: { readonly reason: string; readonly at: string } | null;
  readonly earnings_usd: string;
  readonly offers: readonly Offer[];
  readonly failures: readonly FailedCall[];
}

function showCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('show')
      .summary('one provider: offers, errors, earnings')
      .description(
        'One provider: its offers with health and margin, its last errors, its earnings. It needs a running gateway.',
      )
      .argument(...PROVIDER)
      .addOption(new Option('--range <range>', 'of which time').choices(RANGES).default('24h')),
  ).action((name: string, { range, ...flags }: AdminFlags & { readonly range: string }) =>
    administer(flags, {
      run: async (admin) =>
        (await admin.request('GET', `${await findProviderPath(admin, name)}?range=${range}`)).data as ShownProvider,
      show(seller) {
        const state =
          seller.banned !== null
            ? `banned: ${seller.banned.reason}`
            : seller.own
              ? 'in the configuration'
              : seller.connected === true
                ? 'connected'
                : 'away';
        const parts = [
          `${seller.name ?? seller.provider} (${seller.provider}), ${state}. To be paid: ${seller.earnings_usd} USD`,
        ];
        if (seller.offers.length > 0) parts.push(offerTable(seller.offers, paint));
        if (seller.failures.length > 0) parts.push(failureTable(seller.failures, paint));
        return parts.join('\n\n');
      },
    }),
  );
}

function callsCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('calls')
      .summary('calls that run now, by provider and service')
      .description('Calls that run now in this gateway, at your own providers too. WAITING: without a first byte.'),
  ).action((flags: AdminFlags) =>
    administer(flags, {
      run: async (admin) => (await admin.request('GET', '/providers/calls')).data as readonly CallsNow[],
      show: (calls) =>
        calls.length === 0
          ? 'No call runs at the moment.'
          : table(
              ['PROVIDER', 'SERVICE', 'CALLS', 'WAITING', 'OLDEST WAIT, S'],
              calls.map((each) => [
                each.provider,
                each.service,
                String(each.in_flight),
                String(each.waiting),
                each.oldest_wait_seconds.toFixed(1),
              ]),
              paint,
              ['CALLS', 'WAITING', 'OLDEST WAIT, S'],
            ),
    }),
  );
}

function failuresCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('failures')
      .summary('the newest calls that failed, with the words of the services')
      .description(
        'The newest calls that failed at each service since this gateway has started, at your own providers too: at most 20 of a service.',
      )
      .argument('[provider]', 'only of this one: its public key or its name'),
  ).action((name: string | undefined, flags: AdminFlags) =>
    administer(flags, {
      run: (admin) => listAll<FailedCall>(admin, '/providers/failures', name === undefined ? {} : { provider: name }),
      show: (failures) =>
        failures.length === 0 ? 'No call has failed since the gateway started.' : failureTable(failures, paint),
    }),
  );
}

function banCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('ban')
      .summary('disconnect a provider and keep it out')
      .description(
        'Ban a provider, on all gateways at once: its services are gone, its running calls have 30 s to end, and it cannot connect again.',
      )
      .argument(...PROVIDER)
      .requiredOption('--reason <text>', 'why; the provider is told'),
  ).action((name: string, flags: AdminFlags & { reason: string }) =>
    administer(flags, {
      run: async (admin) =>
        (
          await admin.request('POST', `${await findProviderPath(admin, name, { isListed: true })}/ban`, {
            reason: flags.reason,
          })
        ).data as Ban,
      show: ({ provider, seen, earnings_usd: earnings }) =>
        seen === false
          ? `${paint('yellow', '!')} ${provider} is banned, but no such provider ever connected here. Check the key: ${OWN_NAME} provider list. Lift a wrong ban: ${OWN_NAME} provider unban ${provider}`
          : `${paint('green', '✓')} ${provider} is banned. Its earnings of ${earnings} USD stay on its account: it can withdraw them over a chain, or you pay them.`,
    }),
  );
}

function unbanCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('unban')
      .summary('let a banned provider in again')
      .description('Lift the ban of a provider. Its proxy must be started again.')
      .argument(...PROVIDER),
  ).action((name: string, flags: AdminFlags) =>
    administer(flags, {
      run: async (admin) => (await admin.request('DELETE', `${await findProviderPath(admin, name)}/ban`)).data as Ban,
      show: ({ provider, changed }) =>
        changed
          ? `${paint('green', '✓')} ${provider} may connect again, if tunnel.providers admits it.`
          : `${paint('yellow', 'Nothing was changed:')} ${provider} was not banned.`,
    }),
  );
}

function payCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('pay')
      .summary('book earnings that you paid outside of the gateway')
      .description(
        'Book earnings that you paid to a provider outside of the gateway, for example by bank transfer. No money is sent.',
      )
      .argument(...PROVIDER)
      .requiredOption('--amount <usd>', 'what you paid, in USD, at most 6 decimal places')
      .option('--reference <text>', 'what the payment is known by; the same reference is booked once')
      .option('--note <text>', 'more about it, for the provider'),
  ).action((name: string, flags: AdminFlags & { amount: string; reference?: string; note?: string }) => {
    const { amount, note } = flags;
    refuseBadAmount(amount, '--amount');
    return administer(flags, {
      run: async (admin) => {
        const payout = { amount_usd: amount, reference: referenceOr(flags.reference), ...(note ? { note } : {}) };
        return (await admin.request('POST', `${await findProviderPath(admin, name)}/payouts`, payout)).data as Booked;
      },
      show: ({ provider, reference, duplicate, earnings_usd: earnings }) =>
        duplicate
          ? `${paint('yellow', 'Nothing was booked:')} ${reference} was booked before. ${provider} has ${earnings} USD left to be paid.`
          : `${paint('green', '✓')} ${amount} USD booked as paid to ${provider}, which has ${earnings} USD left to be paid. Reference: ${reference}`,
    });
  });
}

function payoutsCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('payouts')
      .summary('what you booked as paid, the newest first')
      .description('What you booked as paid to a provider, the newest first.')
      .argument(...PROVIDER),
  ).action((name: string, flags: AdminFlags) =>
    administer(flags, {
      run: async (admin) => listAll<ListedPayout>(admin, `${await findProviderPath(admin, name)}/payouts`),
      show: (payouts) =>
        payouts.length === 0
          ? 'Nothing was booked as paid to this provider.'
          : table(
              ['WHEN', 'USD', 'REFERENCE', 'NOTE', 'TAKEN BACK'],
              payouts.map((each) => [
                each.paid_at.slice(0, 16),
                each.amount_usd,
                each.reference,
                each.note || '-',
                each.undone_at === null ? '-' : `${each.undone_at.slice(0, 16)} ${each.undone_reason}`,
              ]),
              paint,
              ['USD'],
            ),
    }),
  );
}

function undoCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('undo')
      .summary('take back a payout that was booked by mistake')
      .description('Take back a payout that was booked by mistake: the provider has the amount to be paid again.')
      .argument(...PROVIDER)
      .requiredOption('--reference <text>', 'the reference of the payout')
      .requiredOption('--reason <text>', 'why, for the provider and the admin log'),
  ).action((name: string, flags: AdminFlags & { reference: string; reason: string }) => {
    const { reference, reason } = flags;
    return administer(flags, {
      run: async (admin) =>
        (await admin.request('POST', `${await findProviderPath(admin, name)}/payouts/undo`, { reference, reason }))
          .data as Booked,
      show: ({ provider, duplicate, earnings_usd: earnings }) =>
        duplicate
          ? `${paint('yellow', 'Nothing was changed:')} ${reference} was taken back before. ${provider} has ${earnings} USD to be paid.`
          : `${paint('green', '✓')} ${reference} is taken back. ${provider} has ${earnings} USD to be paid.`,
    });
  });
}
