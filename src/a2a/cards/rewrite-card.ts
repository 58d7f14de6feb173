import type { AgentCard, AgentExtension, AgentInterface } from './agent-card.ts';
import type { CardContent } from './card-content.ts';
import type { CardPrice } from './card-price.ts';
import { securityOf, type CardAuth } from './card-security.ts';

/** The payment extension: who has no balance may pay for a task by itself. */
export const X402_EXTENSION = 'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2';
/** Names the extension that tells the price. It is only read: there is nothing to do for a client that knows it. */
const PRICING_EXTENSION = 'urn:tollgate:pricing';

/** The gateway's own terms for a service, whatever its agent does. */
export interface CardTerms {
  /** Our address of the service, without a slash at its end. */
  readonly url: string;
  readonly name: string;
  /** May be empty. */
  readonly description: string;
  /** Every agent behind the service can stream. */
  readonly streaming: boolean;
  /** Webhooks are notified of its tasks; default yes. */
  readonly push?: boolean;
  /** null: the card tells no price. */
  readonly price: CardPrice | null;
  readonly auth: CardAuth;
  /** Whether calls can be paid by x402. */
  readonly x402: boolean;
}

/** The interfaces of the gateway, whatever the agent speaks, in the order in which a client should prefer them. */
const CARRIED = [
  ['JSONRPC', '1.0'],
  ['HTTP+JSON', '1.0'],
  ['JSONRPC', '0.3'],
  ['HTTP+JSON', '0.3'],
] as const;

const TEXT_MODES = ['text/plain'];

/**
 * The card of a service in the form of 1.0: what its agent says of itself, with our addresses, sign-in and payment
 * in place of the agent's. `content` is null, or has little in it, where the agent has no card or a short one; the
 * rest then comes from the catalogue.
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
      // Ours is the webhook that the agent calls, and where it calls none, we see the end of the task ourselves.
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

/** All interfaces at one address: requests say which one they mean. */
function interfacesAt(url: string): readonly AgentInterface[] {
  return CARRIED.map(([protocolBinding, protocolVersion]) => ({ url, protocolBinding, protocolVersion }));
}

/** The agent's extensions and ours; an agent that has ours too does not speak for us. */
function extensionsOf(
  theirs: readonly AgentExtension[],
  { price, x402 }: CardTerms,
): { readonly extensions?: readonly AgentExtension[] } {
  const ours: AgentExtension[] = [];
  if (x402) ours.push({ uri: X402_EXTENSION, description: 'A task without a balance can be paid for by itself' });
  if (price) ours.push({ uri: PRICING_EXTENSION, description: 'What a call costs', params: { ...price } });
  const kept = theirs.filter(({ uri }) => !uri.startsWith(X402_FAMILY) && uri !== PRICING_EXTENSION);
  const extensions = [...new Map([...kept, ...ours].map((extension) => [extension.uri, extension])).values()];
  return extensions.length > 0 ? { extensions } : {};
}

/** Any version of the payment extension: an agent would be paid past the gateway. */
/** The beginning of the address of every version of that extension. */
export const X402_FAMILY = 'https://github.com/google-agentic-commerce/a2a-x402/';

const filled = <T>(list: readonly T[] | undefined): readonly T[] | null => (list && list.length > 0 ? list : null);
