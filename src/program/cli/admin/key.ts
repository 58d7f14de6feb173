import { Command, Option } from 'commander';
import { LIMIT_RESETS, parseTag } from '#accounts/names';
import {
  accountPath,
  administer,
  isUsd,
  listAll,
  withAdminOptions,
  type AdminClient,
  type AdminFlags,
} from './admin-client.ts';
import { CliError, onScreen, painter, table, type Paint } from '../terminal.ts';
import { OWN_NAME, START } from '../command-line.ts';

interface Key {
  readonly hash: string;
  readonly name: string;
  readonly disabled: boolean;
  readonly limit: number | null;
  readonly limit_reset: string | null;
  readonly usage: number;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly allowed_services: readonly string[] | null;
  readonly tags: Readonly<Record<string, string>> | null;
  /** The program that has it by signing in; null for a key that was created. */
  readonly client: string | null;
  readonly development: boolean;
}
interface CreateFlags extends AdminFlags {
  readonly name?: string;
  readonly limit?: string;
  readonly limitReset?: string;
  readonly expires?: string;
  readonly allow?: string[];
  readonly askAbove?: string;
  readonly tag?: string[];
  readonly development?: boolean;
}

/** Characters of a hash that are shown. They are enough to name a key. */
const HASH_SHOWN = 12;

const HELP = `
A key is shown once, when it is made; afterwards it is named by the first characters of its hash.

Examples:
  tollgate key create acme --name laptop --limit 5 --limit-reset monthly
  tollgate key create acme --allow openai/gpt-4o-mini --expires 2030-01-31T12:00:00Z
  tollgate key create acme --allow 'files/*' --allow=-files/delete
  tollgate key create acme --name search --tag team=search feature=summary
  tollgate key list acme
  tollgate key disable acme 3f9a1c`;

/** `tollgate key …`: the API keys of an account. */
export function keyCommand(): Command {
  const paint = painter();
  return new Command('key')
    .summary('API keys: create, list, disable, delete')
    .description('API keys of an account.')
    .addHelpText('after', HELP)
    .addCommand(createCommand(paint))
    .addCommand(listCommand(paint))
    .addCommand(
      changeCommand(paint, {
        name: 'disable',
        summary: 'refuse a key from now on; can be undone',
        run: (admin, path) => admin.request('PATCH', path, { disabled: true }),
        done: 'disabled',
      }),
    )
    .addCommand(
      changeCommand(paint, {
        name: 'enable',
        summary: 'accept a disabled key again',
        run: (admin, path) => admin.request('PATCH', path, { disabled: false }),
        done: 'enabled',
      }),
    )
    .addCommand(
      changeCommand(paint, {
        name: 'delete',
        summary: 'refuse a key for ever',
        run: (admin, path) => admin.request('DELETE', path),
        done: 'deleted',
      }),
    );
}

function createCommand(paint: Paint): Command {
  return withAdminOptions(
    new Command('create')
      .summary('make a key and show it, once')
      .description('Make a key and show it, once.')
      .argument('<account>', 'name or id of its account')
      .option('--name <text>', 'what to call the key')
      .option('--limit <usd>', 'the most it may spend, in each period with --limit-reset')
      .addOption(new Option('--limit-reset <period>', 'when the limit starts anew').choices(LIMIT_RESETS))
      .option('--expires <time>', 'date and time from which it is refused, such as 2030-01-31T12:00:00Z')
      .option(
        '--allow <pattern...>',
        'services and tools that it may call, such as files, files/read or files/*; everything without this',
      )
      .option('--ask-above <usd>', 'a person accepts each call that may cost more; none without this')
      .option('--tag <name=value...>', 'tags of all its calls, which no request changes; at most 4')
      .option('--development', 'a key for play money, which production refuses'),
  ).action((account: string, flags: CreateFlags) => {
    // Checked before anything is opened, so that a wrong command changes nothing.
    const body = keyBody(flags);
    return administer(flags, {
      run: (admin) => admin.request('POST', `${accountPath(account)}/keys`, body),
      show: ({ key, data, warnings = [] }) => {
        for (const warning of warnings) process.stderr.write(`${painter(process.stderr)('yellow', `! ${warning}`)}\n`);
        const text = `${key}\n\n${paint('yellow', 'Keep it now: it cannot be shown again.')}`;
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
      .argument('<account>', 'name or id of the account'),
  ).action((account: string, flags: AdminFlags) =>
    administer(flags, {
      run: (admin) => listAll<Key>(admin, `${accountPath(account)}/keys`),
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
  Object.entries(key.tags ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(', ') || '-',
];

interface KeyChange {
  readonly name: string;
  readonly summary: string;
  readonly run: (admin: AdminClient, path: string) => Promise<unknown>;
  /** The state of the key after the change. */
  readonly done: string;
}

function changeCommand(paint: Paint, { name, summary, run, done }: KeyChange): Command {
  return withAdminOptions(
    new Command(name)
      .summary(summary)
      .description(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`)
      .argument('<account>', 'name or id of its account')
      .argument('<hash>', 'its hash, or the beginning of it'),
  ).action((account: string, hash: string, flags: AdminFlags) => {
    // A shell's variable that is not set gives an empty text, and every hash begins with that.
    if (hash.trim() === '')
      throw new CliError(`<hash> is empty. Name the key: ${OWN_NAME} key list ${account} shows its hash`);
    return administer(flags, {
      run: async (admin) => {
        const key = await findKey(admin, account, hash);
        await run(admin, `${accountPath(account)}/keys/${key.hash}`);
        return { hash: key.hash, name: key.name, state: done };
      },
      show: (key) => `${paint('green', '✓')} ${onScreen(key.name)} (${key.hash.slice(0, HASH_SHOWN)}) is ${done}`,
    });
  });
}

function keyBody(flags: CreateFlags): object {
  if (flags.limit !== undefined && !isUsd(flags.limit))
    throw new CliError(
      `--limit is an amount in USD with at most 6 decimal places, such as 5 or 0.25, not "${flags.limit}"`,
    );
  if (flags.limitReset !== undefined && flags.limit === undefined)
    throw new CliError('--limit-reset needs --limit: without an amount the key has no limit');
  if (flags.askAbove !== undefined && !isUsd(flags.askAbove))
    throw new CliError(
      `--ask-above is an amount in USD with at most 6 decimal places, such as 5 or 0.25, not "${flags.askAbove}"`,
    );
  const tags = flags.tag?.map((text) => {
    const tag = parseTag(text);
    if (tag === null) throw new CliError(`--tag is name=value, such as team=search, not "${text}"`);
    return tag;
  });
  const body = {
    name: flags.name,
    limit: flags.limit === undefined ? undefined : Number(flags.limit),
    limit_reset: flags.limitReset,
    expires_at: flags.expires,
    allowed_services: flags.allow,
    ask_above: flags.askAbove === undefined ? undefined : Number(flags.askAbove),
    tags: tags && Object.fromEntries(tags),
    development: flags.development,
  };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

function stateOf(key: Key): string {
  const state = key.disabled
    ? 'disabled'
    : key.expires_at !== null && Date.parse(key.expires_at) <= Date.now()
      ? 'expired'
      : 'active';
  return key.development ? `${state} (development)` : state;
}

async function findKey(admin: AdminClient, account: string, hash: string): Promise<Key> {
  const keys = (await listAll<Key>(admin, `${accountPath(account)}/keys`)).filter((key) =>
    key.hash.startsWith(hash.toLowerCase()),
  );
  if (keys.length === 1) return keys[0]!;
  if (keys.length > 1)
    throw new CliError(
      `${keys.length} keys of ${account} begin with ${hash}. Give more characters; ${OWN_NAME} key list ${account} shows them.`,
    );
  throw new CliError(
    `${account} has no key whose hash begins with ${hash}.\nSee them: ${OWN_NAME} key list ${account}`,
  );
}
