import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { askYesNo, CliError, say, painter, table } from '../terminal.ts';
import { realPath } from '../discovery.ts';
import { OWN_NAME } from '../command-line.ts';
import type { GatewayClient, Machine, Setup } from './client.ts';
import { findConnection, type ConnectionFlags } from './connection.ts';
import { recordChange, undo, undoFile } from './undo.ts';
import { backUp, changeOf, settingsText, writeChange } from './write-settings.ts';
import { APPS } from './apps.ts';
import { CODING_AGENTS } from './coding-agents.ts';
import { LIBRARIES } from './libraries.ts';

export const CLIENTS: readonly GatewayClient[] = [...CODING_AGENTS, ...APPS, ...LIBRARIES];

/** The client with this name, or of this package. Rejects with CliError, which names the nearest clients. */
async function findClient(name: string): Promise<GatewayClient> {
  const client = CLIENTS.find((one) => one.name === name || one.packages?.includes(name));
  if (client) return client;
  const names = CLIENTS.map((one) => one.name);
  // Loaded here, because a correct name does not need it.
  const { nearestHint } = await import('#catalog');
  throw new CliError(
    `There is no client ${name} here.\n${nearestHint(name, names) || `The clients: ${names.join(', ')}`}\nAny other OpenAI, Anthropic, MCP or A2A client works too: see /docs/guide/clients of the gateway.`,
  );
}

const CHECKOUT = resolve(fileURLToPath(new URL('../../../..', import.meta.url)));

export interface ConnectFlags extends ConnectionFlags {
  readonly mcp?: boolean;
  readonly write?: boolean;
  readonly yes?: boolean;
  readonly project?: boolean;
  readonly undo?: boolean;
}

export function listClients(): void {
  const rows = CLIENTS.map(({ name, title, speaks, models, tools }) => [
    name,
    title,
    models ? speaks! : '',
    tools ? (models ? '--mcp' : 'yes') : '',
    `/docs/guide/clients/${name}`,
  ]);
  process.stdout.write(`${table(['client', 'what it is', 'models by', 'tools by MCP', 'page'], rows, painter())}\n`);
}

/** The person who agrees to a change of files. */
interface Consent {
  /** Asks a question on the terminal; null without a terminal. */
  readonly ask: ((question: string) => Promise<boolean>) | null;
}

/** The time to read what would be written. */
const READ_MS = 300_000;
const onTerminal = (): Consent => ({
  ask: process.stdin.isTTY && process.stdout.isTTY ? (question) => askYesNo(question, READ_MS) : null,
});

/**
 * Prints the settings that a client needs to use the gateway. With `write`, then writes them into the client's files.
 * With `undo`, gives the values that it has written their old values again; this needs no gateway.
 */
export async function connectClient(name: string, connectFlags: ConnectFlags, consent = onTerminal()): Promise<void> {
  const { mcp = false, write = false, yes = false, project = false, undo: undoes = false, ...flags } = connectFlags;
  const client = await findClient(name);
  const machine = { home: homedir(), cwd: realPath(process.cwd()), env: process.env, platform: process.platform };
  if (undoes) return undoClient(client, { mcp, project }, machine);
  const recipe = recipeOf(client, { mcp, project });
  const connection = await findConnection(flags, {
    env: process.env,
    keyless: client.speaks === 'x402',
    calls: client.speaks === 'a2a' ? 'agents' : 'models',
    checkout: CHECKOUT,
    cwd: process.cwd(),
  });
  const { base, balance, model } = connection;
  const tools = recipe === client.tools || recipe === client.inProject?.tools;
  say(`At ${base}${balance === null ? '' : `, balance ${balance} USD`}${tools ? '' : `, model ${model}`}`);
  if (balance === '0') say('The balance is 0: calls that cost something are refused until the account has money.');
  const setup = recipe(connection, machine);
  const paint = painter();
  if (!tools && isDemo(model)) process.stdout.write(`${paint('yellow', demoWarning(client, model))}\n\n`);
  for (const file of setup.files)
    process.stdout.write(`${paint('dim', `${file.path} gets:`)}\n\n${settingsText(file)}\n`);
  if (setup.byHand !== undefined) {
    if (setup.files.length === 0)
      process.stdout.write(paint('dim', `By hand, because the settings of ${client.title} are elsewhere:\n\n`));
    process.stdout.write(`${setup.byHand}\n\n`);
  }
  const again = againOf(name, connectFlags);
  let isSetUp = setup.files.length === 0;
  if (write) {
    const isAgreed = async (paths: readonly string[]) => yes || (await agrees(client, paths, consent, again));
    isSetUp = await writeSetup(client, setup, { tools, machine, secret: connection.key, isAgreed });
  } else if (!isSetUp) process.stdout.write(`${paint('dim', `Nothing was written. To write it: ${again}`)}\n\n`);
  if (setup.tryIt !== undefined && (isSetUp || !write))
    process.stdout.write(`${paint('dim', isSetUp ? 'Then:' : 'Once it is written:')}\n\n${setup.tryIt}\n\n`);
  for (const note of setup.notes ?? []) process.stdout.write(`${paint('yellow', '•')} ${note}\n`);
  process.stdout.write(`${paint('dim', `More: ${base}/docs/guide/clients/${client.name}`)}\n`);
}

const isDemo = (model: string): boolean => /^(?:(?:a2a|mcp)\/)?demo\//.test(model);
const demoWarning = ({ title, speaks }: GatewayClient, model: string): string =>
  `${model} belongs to the demo: it shows that the connection works, and answers with prepared sentences.` +
  (speaks === null || /^(?:a2a|mcp)\//.test(model)
    ? ''
    : `\nIt cannot use tools, which programs with ${title} may want. Name a real model: --model <name>`);

type Recipe = NonNullable<GatewayClient['models']>;

function recipeOf(client: GatewayClient, { mcp, project }: Pick<ConnectFlags, 'mcp' | 'project'>): Recipe {
  const { title, models, tools } = client;
  const usual = !mcp && models ? models : tools;
  if (!usual) throw new CliError(`${title} has no MCP servers. Leave --mcp out to connect its models.`);
  if (!project) return usual;
  const inProject = usual === tools ? client.inProject?.tools : client.inProject?.models;
  // The files of some clients are always those of a project.
  if (inProject ?? ALWAYS_OF_PROJECT.has(client.name)) return inProject ?? usual;
  throw new CliError(
    client.inProject?.tools && usual !== tools
      ? `${title} takes its models from no file of a project, only its tools: --mcp --project.`
      : `${title} reads no settings from the folder of a project. Leave --project out.`,
  );
}

/** Clients whose settings are in the working directory, with --project and without. */
const ALWAYS_OF_PROJECT: ReadonlySet<string> = new Set([
  'librechat',
  'vscode',
  'mcp',
  'openai',
  'anthropic',
  'langchain',
  'ai-sdk',
  'openrouter-sdk',
]);

/** The same command with `--write`. A key is named by its variable, because others may see the screen. */
function againOf(name: string, { url, model, data, mcp, project, key }: ConnectFlags): string {
  const values = Object.entries({ url, model, data }).flatMap(([option, value]) =>
    value === undefined ? [] : [`--${option}`, inShell(value)],
  );
  const more = [...(mcp ? ['--mcp'] : []), ...(project ? ['--project'] : [])];
  const ofKey = key === undefined ? [] : ['--key', '"$KEY"'];
  return [OWN_NAME, 'connect', name, ...values, ...more, ...ofKey, '--write'].join(' ');
}

const inShell = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/**
 * Writes the files of a setup, each with a copy of the old file and a record for `--undo`. `secret` is the key in them.
 * `isAgreed` tells whether files that hold for all projects may be changed. Resolves with whether the files have the
 * settings now.
 */
async function writeSetup(
  client: GatewayClient,
  setup: Setup,
  {
    tools,
    machine,
    secret,
    isAgreed,
  }: {
    readonly tools: boolean;
    readonly machine: Machine;
    readonly secret: string;
    readonly isAgreed: (paths: readonly string[]) => Promise<boolean>;
  },
): Promise<boolean> {
  if (setup.files.length === 0) return true;
  const paint = painter();
  // All files are checked before the first one is written.
  const changes = setup.files.map((file) => ({ file, change: changeOf(file) }));
  for (const { change } of changes) if (change.after === null) process.stdout.write(`${change.path} has it already.\n`);
  const needed = changes.filter(({ change }) => change.after !== null);
  const ofUser = needed.filter(({ file }) => !file.ofProject).map(({ change }) => change.path);
  if (ofUser.length > 0 && !(await isAgreed(ofUser))) return false;
  for (const { file, change } of needed) {
    const backup = backUp(change, new Date());
    const project = file.ofProject ? machine.cwd : null;
    recordChange(undoFile(machine), change, { backup, client: client.name, tools, project });
    writeChange(change, secret);
    process.stdout.write(
      `${paint('green', 'Wrote')} ${change.path}${backup === null ? '' : `\n  as it was: ${backup}`}\n`,
    );
  }
  if (needed.length > 0) {
    const more = needed.every(({ file }) => file.ofProject) && client.inProject ? ' --project' : '';
    process.stdout.write(`${paint('dim', `To undo it: ${OWN_NAME} connect ${client.name}${more} --undo`)}\n`);
  }
  process.stdout.write('\n');
  return true;
}

/** Asks whether files may be changed that hold for all projects. Rejects with CliError if nobody can be asked. */
async function agrees(
  { title }: GatewayClient,
  paths: readonly string[],
  { ask }: Consent,
  again: string,
): Promise<boolean> {
  const files = paths.join(' and ');
  if (ask === null)
    throw new CliError(
      `${files} ${paths.length === 1 ? 'holds' : 'hold'} for every project of ${title}, and nobody can be asked here. Nothing was written.\nTo write it without a question: ${again} --yes`,
    );
  if (await ask(`Change ${files}, for every project of ${title}?`)) return true;
  process.stdout.write('Nothing was written.\n\n');
  return false;
}

function undoClient(
  client: GatewayClient,
  { mcp, project }: { readonly mcp: boolean; readonly project: boolean },
  machine: Machine,
): void {
  const ofProject = project || ALWAYS_OF_PROJECT.has(client.name);
  const scope = { client: client.name, project: ofProject, cwd: machine.cwd, ...(mcp ? { tools: true } : {}) };
  const undone = undo(undoFile(machine), scope);
  if (undone.length === 0)
    throw new CliError(
      `connect has written nothing for ${client.title} ${ofProject ? `in ${machine.cwd}` : 'that holds for all projects'}, so there is nothing to undo.` +
        (client.inProject && !ofProject ? '\nIn the folder of a project: --project --undo' : ''),
    );
  const paint = painter();
  for (const { path, outcome, unchanged: stays, backup } of undone) {
    const words = {
      'as before': `${paint('green', 'Undone')} in ${path}`,
      removed: `${paint('green', 'Removed')} ${path}, which connect had made`,
      gone: `${path} is gone, so nothing is to be undone there`,
    };
    process.stdout.write(`${words[outcome]}\n`);
    for (const name of stays) process.stdout.write(`  ${paint('yellow', 'kept')} ${name}: it was changed since\n`);
    if (backup !== null) process.stdout.write(`  as it was before: ${backup}\n`);
  }
}
