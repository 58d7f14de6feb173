import { GatewayError } from '#errors';
import { printable } from '#security';
import { nearestHint, type Catalog, type Resolved, type Offer } from '#catalog';
import type { CardFacts } from '../cards/read-card.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/**
 * The service of a name. `param` is the parameter that holds the name. Throws GatewayError `invalid_model` for an
 * unknown name, because A2A has a code for it that differs from the code of an unknown task.
 */
export function resolveAgent(catalog: Pick<Catalog, 'resolve'>, name: string, param?: string): Resolved {
  try {
    return catalog.resolve(name, 'agent');
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'not_found') throw unknownAgent(name, [], param);
    throw error;
  }
}

export function unknownAgent(name: string, names: Iterable<string> = [], param?: string): GatewayError {
  const hint = nearestHint(name, names) || 'GET /api/v1/agents lists all agents';
  return new GatewayError('invalid_model', `${kindOf(name)} not found: ${printable(name)}. ${hint}`, { param });
}

/** The primitive that the prefix of a name means. Models and tools can be called as agents here. */
function kindOf(name: string): string {
  if (name.startsWith('model/')) return 'Model';
  return name.startsWith('mcp/') ? 'Tool' : 'Agent';
}

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
  const endpoint = facts.jsonRpc.find(({ version }) => version === client);
  const rest = facts.rest.find(({ version }) => version === '1.0');
  if (!endpoint && client === '1.0' && rest) return { ...rest, binding: 'rest' };
  const other = endpoint ?? facts.jsonRpc[0];
  if (other) return { ...other, path: rpcPath ?? other.path, binding: 'jsonrpc' };
  if (rest) return { ...rest, binding: 'rest' };
  return { version: facts.versions[0] ?? '0.3', binding: 'jsonrpc', path: rpcPath ?? '', tenant: null };
}
