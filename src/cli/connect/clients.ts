import { nearestHint } from '#gateway';
import { CliError } from '../cli-error.ts';
import { APPS } from './apps.ts';
import type { Client } from './client.ts';
import { CODING_AGENTS } from './coding-agents.ts';
import { LIBRARIES } from './libraries.ts';

/** All clients that `tollgate connect` knows, as `--list` shows them. */
export const CLIENTS: readonly Client[] = [...CODING_AGENTS, ...APPS, ...LIBRARIES];

/** Throws a CliError that names the nearest ones. */
export function findClient(name: string): Client {
  const client = CLIENTS.find((one) => one.name === name);
  if (client) return client;
  const names = CLIENTS.map((one) => one.name);
  throw new CliError(
    `There is no client ${name} here.\n${nearestHint(name, names) || `The clients: ${names.join(', ')}`}\nAny other OpenAI, Anthropic, MCP or A2A client works too: see docs/clients.`,
  );
}
