import type { Offer } from '#gateway';
import type { CardFacts } from '../cards/read-card.ts';
import type { A2aVersion } from '../wire/version.ts';

/** How an agent is spoken to. `bare`: a message is posted with nothing around it, and a task comes back. */
export interface Link {
  readonly version: A2aVersion;
  readonly binding: 'jsonrpc' | 'rest' | 'bare';
  /** Below the registered endpoint. */
  readonly path: string;
  readonly tenant: string | null;
}

const BARE_PATH = '/a2a';

/**
 * The way to an agent: in the client's version where it speaks that, so that nothing has to be translated; by
 * JSON-RPC where it has that. The provider's own word on the path goes before the card's.
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
