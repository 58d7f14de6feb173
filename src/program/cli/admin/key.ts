import { Command, Option } from 'commander';
import { LIMIT_RESETS, tagsText } from '#accounts/names';
import { administer, listAll, withAdminOptions, type AdminClient, type AdminFlags } from './admin-client.ts';
import { ACCOUNT, findAccountPath, findKey } from './names.ts';
import type { Key, SettingFlags } from './key-settings.ts';
import { CliError, onScreen, painter, table, type Paint } from '../terminal.ts';
import { OWN_NAME, START } from '../command-line.ts';

/** Characters of a hash that are shown. They are enough to name a key. */
const HASH_SHOWN = 12;

const HELP = `
A key is shown once, when it is made; afterwards it is named by its name, or by the first characters of its hash.

Examples:
  tollgate key create acme --name laptop --limit 5 --limit-reset monthly
  tollgate key create acme --allow openai/gpt-4o-mini --expires 2030-01-31T12:00:00Z
  tollgate key create acme --allow 'files/*' --allow=-files/delete
  tollgate key create acme --name search --tag team=search feature=summary
  tollgate key list acme
  tollgate key change acme 3f9a1c --limit 20 --limit-reset weekly --ask-above 0.5
  tollgate key change acme 3f9a1c --allow-all --expires never
  tollgate key rotate acme 3f9a1c --grace 1h
  tollgate key disable acme 3f9a1c

A program that signed in is limited by a key too, which stands in the list with the address of the program.`;

export function keyCommand(): Command {
  const paint = painter();
  return new Command('key')
    .summary('API keys: create, list, change, rotate, disable, delete')
    .description('API keys of an account.')
    .addHelpText('after', HELP)
    .addCommand(createCommand(paint))
    .addCommand(listCommand(paint))
    .addCommand(changeCommand(paint))
    .addCommand(rotateCommand(paint))
    .addCommand(
      stateCommand(paint, {
        name: 'disable',
        summary: 'refuse a key from now on; can be undone',
        run: (admin, path) => admin.request('PATCH', path, { disabled: true }),
        done: 'disabled',
      }),
    )
    .addCommand(
      stateCommand(paint, {
        name: 'enable',
        summary: 'accept a disabled key again',
        run: (admin, path) => admin.request('PATCH', path, { disabled: false }),
        done: 'enabled',
      }),
    )
    .addCommand(
      stateCommand(paint, {
        name: 'delete',
        summary: 'refuse a key for ever',
        run: (admin, path) => admin.request('DELETE', path),
        done: 'deleted',
      }),
    );
}

function withSettings(command: Command): Command {
  return command
    .option('--name <text>', 'what to call the key')
    .option('--limit <usd>', 'the most it may spend, in each period with --limit-reset, or none')
    .addOption(new Option('--limit-reset <period>', 'when the limit starts anew').choices([...LIMIT_RESETS, 'never']))
    .option('--limit-soft', 'the limit refuses no calls, and only sends notices')
    .option('--no-limit-soft', 'the limit refuses calls')
    .option('--limit-notify <percent...>', 'percentages of the limit at which a notice is sent, or none')
    .option('--requests-per-minute <number>', 'the most requests in a minute, or none')
    .option('--tokens-per-minute <number>', 'the most tokens in a minute, or none')
    .option('--expires <time>', 'date and time from which it is refused, such as 2030-01-31T12:00:00Z, or never')
    .addOption(
      new Option(
        '--allow <pattern...>',
        'services and tools that it may call, such as files, files/read, files/*, tool:files or -files/delete; instead of those before',
      ).conflicts('allowAll'),
    )
    .option('--allow-all', 'it may call every service and tool')
    .option('--ask-above <usd>', 'a person accepts each call that may cost more, or none')
    .addOption(
      new Option(
        '--continue <what>',
        'whether the next model of a request goes on with a stream that breaks off, or none for what the model says',
      ).choices(['true', 'false', 'none']),
    )
    .option('--tag <name=value...>', 'tags of all its calls, which no request changes; at most 4, or none');
}

function createCommand(paint: Paint): Command {
  return withAdminOptions(
    withSettings(
      new Command('create')
        .summary('make a key and show it, once')
        .description('Make a key and show it, once.')
        .argument(...ACCOUNT),
    ).option('--development', 'a key for play money, which production refuses'),
  ).action(async (account: string, flags: SettingFlags & { readonly development?: boolean }) => {
    // Checked before anything is opened, so that a wrong command changes nothing.
    const { settingsBody } = await import('./key-settings.ts');
    const { development } = flags;
    const body = { ...settingsBody(flags), ...(development === undefined ? {} : { development }) };
    if ('limit_reset' in body && !('limit' in body))
      throw new CliError('--limit-reset needs --limit: without an amount the key has no limit');
    return administer(flags, {
      run: async (admin) => admin.request('POST', `${await findAccountPath(admin, account)}/keys`, body),
      show: ({ key, data, warnings = [] }) => {
        for (const warning of warnings) process.stderr.write(`${painter(process.stderr)('yellow', `! ${warning}`)}\n`);
        const text = newKeyText(paint, key);
        return (data as Key).development
          ? `${text}\nIt is a development key: ${START} takes it, tollgate serve refuses it.`
          : text;
      },
    });
  });
}

function listCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('list')
      .summary("an account's keys")
      .description("An account's keys and what they have spent.")
      .argument(...ACCOUNT),
  ).action((account: string, flags: AdminFlags) =>
    administer(flags, {
      run: async (admin) => listAll<Key>(admin, `${await findAccountPath(admin, account)}/keys`),
      show: (keys) =>
        keys.length === 0
          ? `No keys yet. Make one: ${OWN_NAME} key create ${account}`
          : table(['HASH', 'NAME', 'STATE', 'SPENT', 'LIMIT', 'EXPIRES', 'SERVICES', 'TAGS'], keys.map(row), paint, [
              'SPENT',
            ]),
    }),
  );
}

const row = (key: Key): string[] => [
  key.hash.slice(0, HASH_SHOWN),
  key.client === null ? key.name : `${key.name} (${key.client})`,
  stateOf(key),
  String(key.usage),
  key.limit === null ? '-' : `${key.limit}${key.limit_reset ? ` ${key.limit_reset}` : ''}`,
  key.expires_at?.slice(0, 16).replace('T', ' ') ?? '-',
  key.allowed_services?.join(' ') ?? 'all',
  tagsText(key.tags ?? {}) || '-',
];

const ofOneKey = (command: Command): Command =>
  command.argument(...ACCOUNT).argument('<key>', 'its name, its hash, or the beginning of its hash');

function changeCommand(paint: Paint): Command {
  const command = ofOneKey(
    new Command('change')
      .summary('change the name, limits, rates, end or services of a key')
      .description('Change a key, also one of a program that signed in. What no option names stays as it is.'),
  );
  return withAdminOptions(withSettings(command)).action(async (account: string, name: string, flags: SettingFlags) => {
    const { settingsBody, settingsText } = await import('./key-settings.ts');
    const changes = settingsBody(flags);
    if (Object.keys(changes).length === 0)
      throw new CliError(
        `Nothing to change. Name what shall be different, such as --limit 5: ${OWN_NAME} key change --help`,
      );
    requireKey(account, name);
    return administer(flags, {
      run: async (admin) => {
        const path = await findAccountPath(admin, account);
        const key = await findKey<Key>(admin, { path, account, key: name });
        return (await admin.request('PATCH', `${path}/keys/${key.hash}`, changes)).data as Key;
      },
      show: (key) => `${doneText(paint, key, 'changed')}\n${settingsText(key, paint)}`,
    });
  });
}

/** Seconds of each unit of `--grace`. */
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 60 * 60, d: 24 * 60 * 60 };
const GRACE_DAYS_MAX = 7;

/** Seconds. Throws CliError for a text that is no such time. */
function graceOf(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,6})([smhd])?$/.exec(text) ?? [];
  const seconds = Number(count) * UNITS[unit]!;
  if (seconds <= GRACE_DAYS_MAX * UNITS['d']!) return seconds;
  throw new CliError(`--grace is a time such as 0, 30m, 1h or 2d, at most ${GRACE_DAYS_MAX}d, not "${text}"`);
}

function rotateCommand(paint: Paint): Command {
  const command = ofOneKey(
    new Command('rotate')
      .summary('give a key another text and show it, once; name, limits, spending and figures stay')
      .description(
        'Give a key another text and show it, once. Its name, limits, spending and figures stay. Browsers that signed in with the key are signed out.',
      ),
  ).option(
    '--grace <time>',
    `how long the text before still calls and reads, such as 1h, at most ${GRACE_DAYS_MAX}d`,
    '0',
  );
  return withAdminOptions(command).action(
    (account: string, name: string, { grace, ...flags }: AdminFlags & { readonly grace: string }) => {
      const body = { grace_seconds: graceOf(grace) };
      requireKey(account, name);
      return administer(flags, {
        run: async (admin) => {
          const path = await findAccountPath(admin, account);
          const key = await findKey<Key>(admin, { path, account, key: name });
          return admin.request('POST', `${path}/keys/${key.hash}/rotate`, body);
        },
        show: ({ key }) => newKeyText(paint, key),
      });
    },
  );
}

const newKeyText = (paint: Paint, key: unknown): string =>
  `${key as string}\n\n${paint('yellow', 'Keep it now: it cannot be shown again.')}`;

interface StateChange {
  readonly name: string;
  readonly summary: string;
  readonly run: (admin: AdminClient, path: string) => Promise<unknown>;
  readonly done: string;
}

function stateCommand(paint: Paint, { name, summary, run, done }: StateChange): Command {
  const description = `${summary[0]!.toUpperCase()}${summary.slice(1)}.`;
  return withAdminOptions(ofOneKey(new Command(name).summary(summary).description(description))).action(
    (account: string, keyName: string, flags: AdminFlags) => {
      requireKey(account, keyName);
      return administer(flags, {
        run: async (admin) => {
          const path = await findAccountPath(admin, account);
          const key = await findKey<Key>(admin, { path, account, key: keyName });
          await run(admin, `${path}/keys/${key.hash}`);
          return { hash: key.hash, name: key.name, state: done };
        },
        show: (key) => doneText(paint, key, done),
      });
    },
  );
}

const doneText = (paint: Paint, { name, hash }: Pick<Key, 'name' | 'hash'>, done: string): string =>
  `${paint('green', '✓')} ${onScreen(name)} (${hash.slice(0, HASH_SHOWN)}) is ${done}`;

/** A shell's variable that is not set gives an empty text, and every hash begins with that. */
function requireKey(account: string, name: string): void {
  if (name.trim() === '') throw new CliError(`<key> is empty. Name the key: ${OWN_NAME} key list ${account} shows it`);
}

function stateOf(key: Key): string {
  const state = key.disabled
    ? 'disabled'
    : key.expires_at !== null && Date.parse(key.expires_at) <= Date.now()
      ? 'expired'
      : 'active';
  return key.development ? `${state} (development)` : state;
}
