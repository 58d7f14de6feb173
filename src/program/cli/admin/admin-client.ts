import { randomUUID } from 'node:crypto';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Option, type Command } from 'commander';
import { CliError, say } from '../terminal.ts';
import { OWN_NAME, START } from '../command-line.ts';
import type { TargetFlags } from './target.ts';

/**
 * The administration of a gateway, through the same admin API either way: of the running gateway, or of its database if
 * none runs.
 */
export interface AdminClient {
  /** `path` is below `/admin/v1`. Resolves to the body of the answer, which has `data`. Rejects with CliError. */
  request(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<AdminAnswer>;
  /** Writes the file that a path answers with, as it comes. Rejects with CliError. */
  download(path: string, out: Writable): Promise<void>;
  close(): Promise<void>;
}

/** An answer of the admin API. `key` is present only if a key was made. */
interface AdminAnswer {
  /** The status of HTTP: 201 if something was created. */
  readonly status: number;
  readonly data: unknown;
  readonly key?: string;
  readonly warnings?: readonly string[];
}

/** A request that the admin API refused. `param` is the field of the request that is wrong, or null. */
export class RefusedRequest extends CliError {
  readonly status: number;
  readonly param: string | null;
  constructor(message: string, { status, param }: { readonly status: number; readonly param: string | null }) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

export interface AdminFlags extends TargetFlags {
  readonly json?: boolean;
}

export const withAdminOptions = (command: Command): Command =>
  withGatewayOptions(command.option('--json', 'print JSON instead of a table'));

export function withGatewayOptions(command: Command): Command {
  whichGateway(
    command,
    '--url <address>',
    'address of a running gateway (TOLLGATE_URL); by default the one that runs on the data directory',
  );
  whichGateway(
    command,
    '--admin-key <key>',
    'its admin key; better in TOLLGATE_ADMIN_KEY, which process lists do not show',
  );
  return withTargetOptions(command);
}

export function withTargetOptions(command: Command): Command {
  whichGateway(command, '--data <directory>', 'data directory (TOLLGATE_DATA)');
  whichGateway(
    command,
    '-c, --config <file>',
    'TOML file that names the data directory or the database (TOLLGATE_CONFIG)',
  );
  return command;
}

/** For a command whose route has a file: with `csv` it prints this file by `printFile`. */
export const csvOption = (): Option =>
  new Option('--csv', 'print the CSV file of the gateway instead of a table').conflicts('json');

const whichGateway = (command: Command, flags: string, description: string) =>
  command.addOption(new Option(flags, description).helpGroup('Which gateway:'));

const REQUEST_MS = 10 * 60_000;

/** Opens the running gateway, or else the database itself. `create`: a missing database is created. */
async function openAdmin(flags: AdminFlags, options: { readonly create?: boolean } = {}): Promise<AdminClient> {
  // Loaded here, like everything below, because the help of a command needs none of it.
  const { findTarget } = await import('./target.ts');
  const { running, config, words } = await findTarget(flags, { ...options, placeOnly: true });
  say(words);
  if (running) return remote(running);
  const { openAdministration } = await import('#app/administration');
  const administration = await openAdministration(config, { warn: say });
  return {
    async request(method, path, body) {
      const { status, text } = await administration.request(method, path, body);
      if (status === 404 && text.includes('"No such endpoint: '))
        throw new CliError(
          `No gateway runs on this data directory, and only a gateway that runs can answer this.\nStart it, or name its data directory with --data, or its address with --url.`,
        );
      return readAnswer(status, text, 'The database', path);
    },
    async download(path, out) {
      const { status, text } = await administration.request('GET', path);
      if (status >= 400) readAnswer(status, text, 'The database', path);
      await writeAll(Readable.from([text]), out);
    },
    close: administration.close,
  };
}

/** Writes all of it, and leaves `out` open. */
const writeAll = (from: Readable, out: Writable) => pipeline(from, out, { end: false });

/** The admin API of a running gateway. */
export function remote({ base, key }: { readonly base: string; readonly key: string }): AdminClient {
  const send = async (method: string, path: string, body?: object): Promise<Response> => {
    try {
      return await fetch(`${base}/admin/v1${path}`, {
        method,
        redirect: 'error',
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        signal: AbortSignal.timeout(REQUEST_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw noAnswer(error);
    }
  };
  const noAnswer = (cause: unknown) =>
    new CliError(
      `${base} does not answer.\nIs the gateway running there? Start it with ${START} or tollgate serve, or give another --url.`,
      { cause },
    );
  const textOf = (response: Response) =>
    response.text().catch((error: unknown) => {
      throw noAnswer(error);
    });
  return {
    async request(method, path, body) {
      const response = await send(method, path, body);
      return readAnswer(response.status, await textOf(response), base, path);
    },
    async download(path, out) {
      const response = await send('GET', path);
      if (!response.ok || response.body === null) readAnswer(response.status, await textOf(response), base, path);
      else
        await writeAll(Readable.fromWeb(response.body), out).catch((error: unknown) => {
          throw new CliError(`${base} broke the file off, so it is not whole. Repeat the command`, { cause: error });
        });
    },
    close: async () => {},
  };
}

function readAnswer(status: number, text: string, where: string, path: string): AdminAnswer {
  let body: Partial<AdminAnswer> & { error?: { message?: string; param?: unknown } };
  try {
    body = (JSON.parse(text) ?? {}) as typeof body;
  } catch {
    throw new CliError(`${where} answered with something that is not JSON (status ${status}). Is it a tollgate?`);
  }
  if (status < 400 && 'data' in body) return { ...body, status, data: body.data };
  const message = body.error?.message ?? `status ${status}`;
  const refusal = { status, param: typeof body.error?.param === 'string' ? body.error.param : null };
  if (status === 404) {
    const list = listFor(path);
    throw new RefusedRequest(list === null ? message : `${message}.\nSee what there is: ${OWN_NAME} ${list}`, refusal);
  }
  throw new RefusedRequest(
    status === 401
      ? `${where}: ${message}.\nGive the right one in TOLLGATE_ADMIN_KEY; without it the key in the data directory is used.`
      : message,
    refusal,
  );
}

/** The lists of what the address of a request can name, by what it begins with; the first that fits. */
const LISTS: readonly (readonly [path: RegExp, command: string])[] = [
  [/^\/admin-keys/, 'admin-key list'],
  [/^\/calls\//, 'calls <account>'],
  [/^\/services/, 'services'],
  [/^\/providers.*\/payouts\/undo$/, 'provider payouts <provider>'],
  [/^\/providers/, 'provider list'],
  [/^\/accounts\/[^/]*\/notes\//, 'account notes <account>'],
  [/^\/accounts\/[^/]*\/keys\//, 'key list <account>'],
  [/^\/accounts/, 'account list'],
];

/** The command that lists what the address of a request could have named. null if no list has it. */
const listFor = (path: string): string | null => LISTS.find(([pattern]) => pattern.test(path))?.[1] ?? null;

/** Prints the file that a path of the admin API answers with. */
export async function printFile(flags: AdminFlags, path: (admin: AdminClient) => Promise<string>): Promise<void> {
  const admin = await openAdmin(flags);
  try {
    await admin.download(await path(admin), process.stdout);
  } finally {
    await admin.close();
  }
}

/**
 * Runs a command against the gateway that the flags name, and prints the result: as JSON, or in the words of `show`.
 */
export async function administer<T>(
  flags: AdminFlags,
  options: {
    readonly create?: boolean;
    readonly run: (admin: AdminClient) => Promise<T>;
    readonly show: (result: T) => string;
  },
): Promise<void> {
  const admin = await openAdmin(flags, { create: options.create ?? false });
  try {
    const result = await options.run(admin);
    process.stdout.write(`${flags.json ? JSON.stringify(result, null, 2) : options.show(result)}\n`);
  } finally {
    await admin.close();
  }
}

export async function listAll<T>(
  admin: AdminClient,
  path: string,
  filter: Readonly<Record<string, string>> = {},
): Promise<readonly T[]> {
  const all: T[] = [];
  for (;;) {
    const query = new URLSearchParams({ ...filter, limit: String(PAGE), offset: String(all.length) });
    const page = (await admin.request('GET', `${path}?${query}`)).data as readonly T[];
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}
const PAGE = 100;

/**
 * The operator's reference for an action that must happen only once. Without one, creates a reference and prints it.
 */
export function referenceOr(key: string | undefined): string {
  if (key !== undefined) return key;
  const reference = `cli-${randomUUID()}`;
  say(`Its reference is ${reference}. If this breaks off, repeat it with --reference ${reference}: it is done once.`);
  return reference;
}
