import type { Offer } from '#gateway';
import type { CardFacts } from '../cards/read-card.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/**
 * The protocol of the requests to an agent. `bare`: a message is posted without an envelope, and a bare task comes
 * back.
 */
export interface Link {
  readonly version: A2aVersion;
  readonly binding: 'jsonrpc' | 'rest' | 'bare';
  /** The path below the registered endpoint. */
  readonly path: string;
  readonly tenant: string | null;
}

const BARE_PATH = '/a2a';

/**
 * Chooses the link to an agent. It uses the client's version if the agent speaks it, so that nothing needs translation,
 * and JSON-RPC if the agent has it. The path that the provider registered goes before the path in the card.
 */
export function chooseLink({ agent }: Pick<Offer, 'agent'>, facts: CardFacts, client: A2aVersion): Link {
  const rpcPath = agent?.rpcPath ?? null;
  if (facts.bare) return { version: '1.0', binding: 'bare', path: rpcPath ?? BARE_PATH, tenant: null };
  const found = facts.jsonRpc.find(({ version }) => version === client);
  const rest = facts.rest.find(({ version }) => version === '1.0');
  if (!found && client === '1.0' && rest) return { ...rest, binding: 'rest' };
  const other = found ?? facts.jsonRpc[0];
  if (other) return { ...other, path: rpcPath ?? other.path, binding: 'jsonrpc' };
  if (rest) return { ...rest, binding: 'rest' };
  return { version: facts.versions[0] ?? '0.3', binding: 'jsonrpc', path: rpcPath ?? '', tenant: null };
}
