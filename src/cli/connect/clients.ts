import { CliError } from '../cli-error.ts';
import { APPS } from './apps.ts';
import type { Client } from './client.ts';
import { CODING_AGENTS } from './coding-agents.ts';
import { LIBRARIES } from './libraries.ts';

/** All clients that `tollgate connect` knows, in the order of `--list`. */
export const CLIENTS: readonly Client[] = [...CODING_AGENTS, ...APPS, ...LIBRARIES];

/** The client with this name, or of this package. Rejects with CliError, which names the nearest clients. */
export async function findClient(name: string): Promise<Client> {
  const client = CLIENTS.find((one) => one.name === name || one.packages?.includes(name));
  if (client) return client;
  const names = CLIENTS.map((one) => one.name);
  // Loaded here, because a correct name does not need it.
  const { nearestHint } = await import('#gateway');
  throw new CliError(
    `There is no client ${name} here.\n${nearestHint(name, names) || `The clients: ${names.join(', ')}`}\nAny other OpenAI, Anthropic, MCP or A2A client works too: see /docs/guide/clients of the gateway.`,
  );
}
