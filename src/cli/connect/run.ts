import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { CliError } from '../cli-error.ts';
import { OWN_NAME } from '../own-name.ts';
import { say } from '../target-words.ts';
import { painter, table, type Paint } from '../terminal.ts';
import type { Client, Setup } from './client.ts';
import { CLIENTS, findClient } from './clients.ts';
import { findConnection, type ConnectionFlags } from './connection.ts';
import { changeOf, settingsText, writeChange } from './write-settings.ts';

const CHECKOUT = resolve(import.meta.dirname, '../../..');

export interface ConnectFlags extends ConnectionFlags {
  readonly mcp?: boolean;
  readonly write?: boolean;
}

/** Prints the clients, one per line. */
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

/** Prints the settings that a client needs to use the gateway. With `write`, writes them into the client's files. */
export async function connectClient(name: string, asked: ConnectFlags): Promise<void> {
  const { mcp, write = false, ...flags } = asked;
  const client = await findClient(name);
  const recipe = recipeOf(client, mcp);
  const connection = await findConnection(flags, {
    env: process.env,
    keyless: client.speaks === 'x402',
    checkout: CHECKOUT,
    cwd: process.cwd(),
  });
  const { base, balance, model } = connection;
  const tools = recipe === client.tools;
  say(`At ${base}${balance === null ? '' : `, balance ${balance} USD`}${tools ? '' : `, model ${model}`}`);
  if (balance === '0') say('The balance is 0: calls that cost something are refused until the account has money.');
  const machine = { home: homedir(), cwd: process.cwd(), env: process.env, platform: process.platform };
  const setup = recipe(connection, machine);
  const paint = painter();
  if (write) writeSetup(client, setup, { secret: connection.key, paint });
  else printSetup(client, setup, { again: againOf(name, asked), paint });
  if (setup.tryIt !== undefined) process.stdout.write(`${paint('dim', 'Then:')}\n\n${setup.tryIt}\n\n`);
  for (const note of setup.notes ?? []) process.stdout.write(`${paint('yellow', '•')} ${note}\n`);
  process.stdout.write(`${paint('dim', `More: ${base}/docs/guide/clients/${client.name}`)}\n`);
}

function recipeOf({ title, models, tools }: Client, mcp: boolean | undefined): NonNullable<Client['models']> {
  if (!mcp && models) return models;
  if (tools) return tools;
  throw new CliError(`${title} has no MCP servers. Leave --mcp out to connect its models.`);
}

/** The same command with `--write`. A key is not repeated, because others may see the screen. */
function againOf(name: string, { url, model, data, mcp, key }: ConnectFlags): string {
  const values = Object.entries({ url, model, data }).flatMap(([option, value]) =>
    value === undefined ? [] : [`--${option}`, inShell(value)],
  );
  const command = [OWN_NAME, 'connect', name, ...values, ...(mcp ? ['--mcp'] : []), '--write'].join(' ');
  return key === undefined ? `To write it: ${command}` : `To write it, with --key as before: ${command}`;
}

const inShell = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

interface Printing {
  readonly again: string;
  readonly paint: Paint;
}

function printSetup(client: Client, setup: Setup, { again, paint }: Printing): void {
  for (const file of setup.files)
    process.stdout.write(`${paint('dim', `${file.path} gets:`)}\n\n${settingsText(file)}\n`);
  if (setup.byHand !== undefined) process.stdout.write(`${setup.byHand}\n\n`);
  if (setup.files.length > 0) process.stdout.write(`${paint('dim', `Nothing was written. ${again}`)}\n\n`);
}

interface Writing {
  readonly secret: string;
  readonly paint: Paint;
}

function writeSetup({ title }: Client, setup: Setup, { secret, paint }: Writing): void {
  if (setup.files.length === 0 && setup.byHand !== undefined) {
    process.stdout.write(
      `${title} keeps its settings where this command cannot write. By hand:\n\n${setup.byHand}\n\n`,
    );
    return;
  }
  // All files are checked before the first one is written.
  for (const change of setup.files.map(changeOf)) {
    if (change.after === null) {
      process.stdout.write(`${change.path} has it already.\n`);
      continue;
    }
    const backup = writeChange(change, { secret, now: new Date() });
    process.stdout.write(
      `${paint('green', 'Wrote')} ${change.path}${backup === null ? '' : `\n  as it was: ${backup}`}\n`,
    );
  }
  process.stdout.write('\n');
}
