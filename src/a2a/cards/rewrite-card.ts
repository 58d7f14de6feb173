import type { AgentCard, AgentExtension, AgentInterface } from './agent-card.ts';
import type { CardContent } from './card-content.ts';
import type { CardPrice } from './card-price.ts';
import { securityOf, type CardAuth } from './card-security.ts';
import { X402_EXTENSION, X402_FAMILY } from '../http/x402.ts';

/** The extension that contains the price. It is for information only, so clients need no support for it. */
const PRICING_EXTENSION = 'urn:tollgate:pricing';

/** The gateway's own terms for a service. */
export interface CardTerms {
  /** The gateway's URL of the service, without a trailing slash. */
  readonly url: string;
  readonly name: string;
  /** May be empty. */
  readonly description: string;
  /** True if every agent of the service can stream. */
  readonly streaming: boolean;
  /** Whether clients can have push notifications for its tasks. Default: true. */
  readonly push?: boolean;
  /** null: the card contains no price. */
  readonly price: CardPrice | null;
  readonly auth: CardAuth;
  /** Whether calls can be paid by x402. */
  readonly x402: boolean;
}

/** The interfaces of the gateway for every agent, in the order in which clients should prefer them. */
const CARRIED = [
  ['JSONRPC', '1.0'],
  ['HTTP+JSON', '1.0'],
  ['JSONRPC', '0.3'],
  ['HTTP+JSON', '0.3'],
] as const;

const TEXT_MODES = ['text/plain'];

/**
 * The card of a service in the form of 1.0: the content of the agent's card, with the gateway's addresses,
 * authentication and payment. `content` is null if the agent has no card. Missing members come from the catalogue.
 */
export function rewriteCard(content: CardContent | null, terms: CardTerms): AgentCard {
  const { provider, documentationUrl, iconUrl } = content ?? {};
  const name = content?.name || terms.name;
  const description = content?.description || terms.description || `${name}, an agent that is called through tollgate`;
  return {
    name,
    description,
    version: content?.version || '1.0.0',
    supportedInterfaces: interfacesAt(terms.url),
    ...(provider ? { provider } : {}),
    ...(documentationUrl ? { documentationUrl } : {}),
    ...(iconUrl ? { iconUrl } : {}),
    capabilities: {
      streaming: terms.streaming,
      // The gateway itself sends push notifications. It learns of changes from its own webhook at the agent or from its
      // looks.
      pushNotifications: terms.push ?? true,
      ...(content?.extended ? { extendedAgentCard: true as const } : {}),
      ...extensionsOf(content?.extensions ?? [], terms),
    },
    ...securityOf(terms.auth),
    defaultInputModes: filled(content?.inputModes) ?? TEXT_MODES,
    defaultOutputModes: filled(content?.outputModes) ?? TEXT_MODES,
    skills: filled(content?.skills) ?? [{ id: 'message', name, description, tags: ['agent'] }],
  };
}

/** All interfaces have the same URL, because each request names its version and binding. */
function interfacesAt(url: string): readonly AgentInterface[] {
  return CARRIED.map(([protocolBinding, protocolVersion]) => ({ url, protocolBinding, protocolVersion }));
}

/** The extensions of the agent and of the gateway. An agent's own entries for the gateway's extensions are removed. */
function extensionsOf(
  theirs: readonly AgentExtension[],
  { price, x402 }: CardTerms,
): { readonly extensions?: readonly AgentExtension[] } {
  const ours: AgentExtension[] = [];
  if (x402)
    ours.push({ uri: X402_EXTENSION, description: 'A client without a balance can pay for each task separately' });
  if (price) ours.push({ uri: PRICING_EXTENSION, description: 'What a call costs', params: { ...price } });
  const kept = theirs.filter(({ uri }) => !uri.startsWith(X402_FAMILY) && uri !== PRICING_EXTENSION);
  const extensions = [...new Map([...kept, ...ours].map((extension) => [extension.uri, extension])).values()];
  return extensions.length > 0 ? { extensions } : {};
}

const filled = <T>(list: readonly T[] | undefined): readonly T[] | null => (list && list.length > 0 ? list : null);
