import { Command } from 'commander';
import { administer, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { painter, table } from '../terminal.ts';

interface Seed {
  readonly receipt_key: string;
  readonly since: string;
}

interface SeedsView extends Seed {
  readonly former: readonly (Seed & { readonly until: string })[];
  readonly depends_on_former: readonly {
    readonly what: string;
    readonly count: number;
    readonly until: string | null;
  }[];
}

export function identityCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('identity')
      .summary('which identity seed the database has, and what depends on those of before')
      .description(
        'The seeds of the identity by the keys that sign their receipts, and what only a seed of before can read. Needs a gateway that runs.',
      ),
  ).action((flags: AdminFlags) =>
    administer(flags, {
      run: async (admin) => (await admin.request('GET', '/identity')).data as SeedsView,
      show({ receipt_key: id, since, former, depends_on_former: uses }) {
        const seeds = [[id, since, 'now'], ...former.map((one) => [one.receipt_key, one.since, one.until])];
        const parts = [table(['RECEIPT KEY', 'SINCE', 'UNTIL'], seeds, paint)];
        if (uses.length > 0) {
          const rows = uses.map(({ what, count, until }) => [
            what,
            `${count}`,
            until ?? 'sealed anew by the next start',
          ]);
          parts.push(table(['DEPENDS ON A SEED OF BEFORE', 'COUNT', 'UNTIL'], rows, paint, ['COUNT']));
        } else if (former.length > 0) parts.push('Nothing depends on a seed of before.');
        return parts.join('\n\n');
      },
    }),
  );
}
