import { Command } from 'commander';
import { painter, table, usd } from '../terminal.ts';
import { administer, listAll, withAdminOptions, type AdminFlags } from './admin-client.ts';
import { ACCOUNT, findAccountPath } from './names.ts';

interface Movement {
  readonly id: string;
  readonly kind: string;
  readonly amount_micro_usdc: number;
  readonly reference: string | null;
  readonly reason: string | null;
  readonly created_at: string;
}

const PAGE = 100;

export function movementsCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('movements')
      .summary('credits, debits, refunds, deposits and withdrawals, the newest first')
      .description('The movements of the money of an account besides its calls, the newest first.')
      .argument(...ACCOUNT)
      .option('--limit <movements>', 'at most so many', '50'),
  ).action((name: string, { limit, ...flags }: AdminFlags & { readonly limit: string }) =>
    administer(flags, {
      async run(admin) {
        const movements: Movement[] = [];
        const path = await findAccountPath(admin, name);
        const most = Number(limit);
        let next: string | null | undefined;
        while (movements.length < most && next !== null) {
          const query = new URLSearchParams({
            limit: `${Math.min(PAGE, most - movements.length)}`,
            ...(next !== undefined && { before: next }),
          });
          const page = await admin.request('GET', `${path}/movements?${query}`);
          movements.push(...(page.data as Movement[]));
          next = (page as typeof page & { readonly next: string | null }).next;
        }
        return movements;
      },
      show: (movements) =>
        movements.length === 0
          ? 'No movements.'
          : table(
              ['WHEN', 'KIND', 'USD', 'REFERENCE', 'REASON'],
              movements.map((each) => [
                each.created_at.slice(0, 19).replace('T', ' '),
                each.kind,
                usd(each.amount_micro_usdc),
                each.reference ?? '',
                each.reason ?? '',
              ]),
              paint,
              ['USD'],
            ),
    }),
  );
}

interface Refusals {
  readonly code: string;
  readonly status: number;
  readonly target: string;
  readonly key: string | null;
  readonly requests: number;
  readonly last_at: string;
  readonly message: string;
  /** Absent from an older gateway, as is `since`. */
  readonly reasons?: readonly { readonly message: string; readonly requests: number; readonly last_at: string }[];
}

export function refusalsCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('refusals')
      .summary('requests that were refused, and why: no money, a limit, no right, a wrong name')
      .description(
        'The newest requests of an account that were refused before they became calls, since this gateway has started. It needs a running gateway.',
      )
      .argument(...ACCOUNT),
  ).action((name: string, flags: AdminFlags) =>
    administer(flags, {
      async run(admin) {
        const { data, since } = (await admin.request('GET', `${await findAccountPath(admin, name)}/refusals`)) as {
          readonly data?: unknown;
          readonly since?: string;
        };
        return { data: data as readonly Refusals[], since };
      },
      show({ data, since }) {
        const start = `since the gateway's start${since === undefined ? '' : ` at ${momentOf(since)}`}`;
        if (data.length === 0) return `No request was refused ${start}.`;
        const lines = table(
          ['LAST', 'TIMES', 'STATUS', 'WHAT', 'KEY', 'WHY'],
          data.flatMap((each) =>
            reasonsOf(each).map(({ message, requests, last_at: last }) => [
              momentOf(last),
              String(requests),
              String(each.status),
              each.target,
              each.key ?? '',
              message,
            ]),
          ),
          paint,
          ['TIMES'],
        );
        return `${lines}\n\nThese are those ${start}; none of before are known.`;
      },
    }),
  );
}

const momentOf = (time: string): string => time.slice(0, 19).replace('T', ' ');

/** One line for each reason, and one for those whose words are forgotten. */
function reasonsOf({ reasons, ...all }: Refusals): NonNullable<Refusals['reasons']> {
  if (reasons === undefined) return [all];
  const rest = all.requests - reasons.reduce((sum, { requests }) => sum + requests, 0);
  const last = reasons.at(-1)?.last_at ?? all.last_at;
  return rest === 0 ? reasons : [...reasons, { message: 'for other reasons', requests: rest, last_at: last }];
}

type Note = Readonly<Record<'id' | 'by' | 'text' | 'at', string>>;

interface NotesFlags extends AdminFlags {
  readonly add?: string;
  readonly delete?: string;
}

export function notesCommand(): Command {
  const paint = painter();
  return withAdminOptions(
    new Command('notes')
      .summary('notes of operators about an account; add or delete one')
      .description('The notes of operators about an account. Its owner does not see them.')
      .argument(...ACCOUNT)
      .option('--add <text>', 'add this note first')
      .option('--delete <id>', 'delete the note with this id first'),
  ).action((name: string, { add, delete: removed, ...flags }: NotesFlags) =>
    administer(flags, {
      async run(admin) {
        const path = `${await findAccountPath(admin, name)}/notes`;
        if (add !== undefined) await admin.request('POST', path, { text: add });
        if (removed !== undefined) await admin.request('DELETE', `${path}/${encodeURIComponent(removed)}`);
        return listAll<Note>(admin, path);
      },
      show: (notes) =>
        notes.length === 0
          ? 'No notes.'
          : table(
              ['WHEN', 'BY', 'ID', 'NOTE'],
              notes.map(({ id, text, at, ...note }) => [at.slice(0, 16).replace('T', ' '), note.by, id, text]),
              paint,
            ),
    }),
  );
}
