import { Command } from 'commander';
import { administer, listAll, withAdminOptions, type AdminClient, type AdminFlags } from './admin-client.ts';
import { CliError, onScreen, painter, table, type Paint } from '../terminal.ts';
import { OWN_NAME } from '../command-line.ts';

interface AdminKey {
  readonly id: string;
  readonly label: string;
  readonly roles: readonly string[];
  readonly state: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

interface ListedChange {
  readonly at: string;
  readonly actor: string;
  readonly label: string | null;
  readonly address: string;
  readonly method: string;
  readonly path: string;
  readonly body: string | null;
  readonly status: number | null;
}

interface CreateFlags extends AdminFlags {
  readonly role: readonly string[];
  readonly expires?: string;
}

interface LogFlags extends AdminFlags {
  readonly limit: string;
}

const HELP = `
Every admin key reads. The role credit also changes accounts, their keys and their money, and configure reloads the
configuration, and changes the members of accounts and the operator's limits. TOLLGATE_ADMIN_KEY may do everything; it
alone makes and revokes admin keys, pays fees out, and acts on treasuries.

Examples:
  tollgate admin-key create invoices --role credit
  tollgate admin-key create grafana --role read --expires 2030-01-31T12:00:00Z
  tollgate admin-key list
  tollgate admin-key revoke grafana
  tollgate admin-key revoke 4f3c2a1b00998877`;

const LOG_HELP = `
Each change by the admin API or by a command, and each that was refused to a key without the role, with its key, address,
time and outcome. Reading is not logged.

Examples:
  tollgate admin-log --limit 20
  tollgate admin-log --json | jq '.[] | select(.actor != "root")'`;

export function adminKeyCommand(): Command {
  const paint = painter();
  return new Command('admin-key')
    .summary('admin keys with roles: make, list, revoke')
    .description('Keys of administrators.')
    .addHelpText('after', HELP)
    .addCommand(createCommand(paint))
    .addCommand(
      withAdminOptions(new Command('list').summary('admin keys').description('List admin keys.')).action(
        (flags: AdminFlags) =>
          administer(flags, {
            run: (admin) => listAll<AdminKey>(admin, '/admin-keys'),
            show: (keys) =>
              keys.length === 0 ? 'No admin key besides TOLLGATE_ADMIN_KEY was made.' : showKeys(keys, paint),
          }),
      ),
    )
    .addCommand(
      withAdminOptions(
        new Command('revoke')
          .summary('refuse an admin key for ever')
          .description('Refuse an admin key for ever.')
          .argument('<key>', 'its id, or its label if no other key has it'),
      ).action((key: string, flags: AdminFlags) =>
        administer(flags, {
          run: async (admin) => {
            const { id } = await findKey(admin, key);
            return (await admin.request('DELETE', `/admin-keys/${id}`)).data as AdminKey;
          },
          show: ({ id, label }) => `${paint('green', '✓')} ${onScreen(label)} (${id}) is revoked`,
        }),
      ),
    );
}

/** The key with this id, or else the only one with this label that is not revoked. Rejects with CliError. */
async function findKey(admin: AdminClient, key: string): Promise<AdminKey> {
  const keys = await listAll<AdminKey>(admin, '/admin-keys');
  const ofId = keys.find(({ id }) => id === key.toLowerCase());
  if (ofId !== undefined) return ofId;
  const labelled = keys.filter(({ label }) => label === key);
  const open = labelled.filter(({ state }) => state !== 'revoked');
  if (open.length === 1) return open[0]!;
  const list = `${OWN_NAME} admin-key list`;
  if (open.length > 1)
    throw new CliError(
      `${open.length} admin keys have the label "${key}". Name one by its id: ${open.map(({ id }) => id).join(', ')}; ${list} shows more of them.`,
    );
  throw new CliError(
    labelled.length > 0
      ? `Every admin key with the label "${key}" is revoked already.\nSee them: ${list}`
      : `There is no admin key with the id or the label "${key}".\nSee them: ${list}`,
  );
}

function createCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('create')
      .summary('make an admin key and show it, once')
      .description('Make an admin key and show it, once.')
      .argument('<label>', 'what to call it')
      .requiredOption('--role <role...>', 'read, credit, configure')
      .option('--expires <time>', 'date and time from which it is refused, such as 2030-01-31T12:00:00Z'),
  ).action((label: string, { role, expires, ...flags }: CreateFlags) =>
    administer(flags, {
      run: (admin) =>
        admin.request('POST', '/admin-keys', {
          label,
          roles: role,
          ...(expires === undefined ? {} : { expires_at: expires }),
        }),
      show: ({ key }) => `${key}\n\n${paint('yellow', 'Keep it now: it cannot be shown again.')}`,
    }),
  );
}

export function adminLogCommand(): Command {
  return withAdminOptions(
    new Command('admin-log')
      .summary('what administrators changed')
      .description('Show what administrators changed, the newest first.')
      .option('--limit <count>', 'entries at most', '50'),
  )
    .addHelpText('after', LOG_HELP)
    .action(({ limit, ...flags }: LogFlags) => {
      if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > 100)
        throw new CliError(`--limit takes a number from 1 to 100, not "${limit}".`);
      return administer(flags, {
        run: async (admin) => (await admin.request('GET', `/audit-log?limit=${limit}`)).data as readonly ListedChange[],
        show: (acts) => (acts.length === 0 ? 'Nothing was changed yet.' : showActs(acts, painter())),
      });
    });
}

const showKeys = (keys: readonly AdminKey[], paint: Paint): string =>
  table(
    ['ID', 'LABEL', 'ROLES', 'STATE', 'MADE', 'EXPIRES'],
    keys.map(({ id, label, roles, state, created_at: createdAt, expires_at: expires }) => [
      id,
      label,
      roles.join(' '),
      state,
      minuteOf(createdAt),
      expires === null ? '-' : minuteOf(expires),
    ]),
    paint,
  );

const showActs = (acts: readonly ListedChange[], paint: Paint): string =>
  table(
    ['TIME', 'WHO', 'FROM', 'WHAT', 'OUTCOME', 'WITH'],
    acts.map(({ at, actor, label, address, method, path, body, status }) => [
      at.slice(0, 19).replace('T', ' '),
      label === null ? actor : `${actor} (${label})`,
      address,
      `${method} ${path.replace(/^\/admin\/v1/, '')}`,
      String(status ?? 'unknown'),
      body ?? '',
    ]),
    paint,
  );

const minuteOf = (time: string): string => time.slice(0, 16).replace('T', ' ');
