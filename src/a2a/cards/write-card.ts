import { byService, firstServices, type Offer, byPrice } from '#catalog';
import { formatUsd, type MicroUsd, unitUsd } from '#billing/amounts';
import { type CardContent, cardText } from './card-content.ts';
import { X402_EXTENSION, X402_FAMILY } from '../wire/protocol.ts';
import type { AgentCard, AgentInterface, AgentExtension, AgentSkill } from './agent-card.ts';

/** The extension that contains the price. It is for information only, so clients need no support for it. */
const PRICING_EXTENSION = 'urn:tollgate:pricing';

interface CardTerms {
  /** The gateway's URL of the service, without a trailing slash. */
  readonly url: string;
  readonly name: string;
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
  const passing = theirs.filter(({ uri }) => !uri.startsWith(X402_FAMILY) && uri !== PRICING_EXTENSION);
  const extensions = [...new Map([...passing, ...ours].map((extension) => [extension.uri, extension])).values()];
  return extensions.length > 0 ? { extensions } : {};
}

const filled = <T>(list: readonly T[] | undefined): readonly T[] | null => (list && list.length > 0 ? list : null);

interface OwnTerms extends Pick<CardTerms, 'url' | 'auth' | 'x402'> {
  readonly version: string;
}

const SKILLS_MAX = 200;
const OWN_TEXT_MAX = 2_000;

const DESCRIPTION =
  'One address for many agents, paid by use. Each skill is an agent: name it by the skill’s id, as tenant or in the message’s metadata as ' +
  '"tollgate/agent". Each also has a card and an address of its own, at /a2a/ and its id.';

/**
 * The gateway's own card, with one skill for each agent service of the catalogue, by name. `offers`: the offers of all
 * agents.
 */
export function ownCard(offers: readonly Offer[], { version, ...terms }: OwnTerms): AgentCard {
  const skills = firstServices(byService(offers), SKILLS_MAX).map(skillOf);
  const content = {
    name: 'tollgate',
    description: DESCRIPTION,
    version,
    extended: false,
    extensions: [],
    inputModes: [],
    outputModes: [],
    skills,
  };
  return rewriteCard(content, {
    ...terms,
    name: content.name,
    description: content.description,
    streaming: true,
    price: null,
  });
}

function skillOf(offers: readonly Offer[]): AgentSkill {
  const { service, displayName } = offers[0]!;
  const name = cardText(displayName, OWN_TEXT_MAX) || service;
  const description =
    offers.map((offer) => cardText(offer.description, OWN_TEXT_MAX)).find((text) => text !== '') ?? name;
  return { id: service, name, description, tags: ['agent'] };
}

/**
 * The price of a message to an agent, as exact decimal texts in USD. It is the price of the cheapest provider, except
 * for the maxima.
 */
interface CardPrice {
  readonly currency: 'USD';
  /** Set if each message is charged; "0" if a message itself costs nothing. */
  readonly per_call_usd?: string;
  /** Set if all messages of a task are charged together once. */
  readonly per_task_usd?: string;
  readonly per_second_usd?: string;
  readonly per_1m_prompt_tokens_usd?: string;
  readonly per_1m_completion_tokens_usd?: string;
  /**
   * The highest cost of one message or task, by its use or at a more expensive provider. Set only if it is higher than
   * the price of a call.
   */
  readonly maximum_usd?: string;
  /**
   * The highest amount that the agent may additionally spend on its own calls in the consumer's name, unless the
   * consumer sets another budget. It is the amount of the provider with the highest one.
   */
  readonly nested_maximum_usd?: string;
}

/** The price of a service. `offers` is not empty. */
export function cardPrice(offers: readonly Offer[]): CardPrice {
  const [cheapest] = byPrice(offers) as [Offer];
  const { call = 0n, second, prompt, completion } = cheapest.price.rates;
  const most = offers.reduce((dearest, offer) => (mostOf(offer) > dearest ? mostOf(offer) : dearest), 0n);
  const nested = offers.reduce(
    (largest, { agent }) => (agent && agent.nestedMax > largest ? agent.nestedMax : largest),
    0n,
  );
  return {
    currency: 'USD',
    ...(cheapest.agent?.chargedPer === 'task' ? { per_task_usd: unitUsd(call) } : { per_call_usd: unitUsd(call) }),
    ...(second === undefined ? {} : { per_second_usd: unitUsd(second) }),
    ...(prompt === undefined ? {} : { per_1m_prompt_tokens_usd: formatUsd(prompt) }),
    ...(completion === undefined ? {} : { per_1m_completion_tokens_usd: formatUsd(completion) }),
    ...(most * UNITS > call ? { maximum_usd: formatUsd(most) } : {}),
    ...(nested > 0n ? { nested_maximum_usd: formatUsd(nested) } : {}),
  };
}

/** Rates are micro-USD per million units. */
const UNITS = 1_000_000n;

function mostOf({ price, priceCap }: Offer): MicroUsd {
  return priceCap ?? ((price.rates.call ?? 0n) + UNITS - 1n) / UNITS;
}

export interface CardAuth {
  /** URL of the metadata of the issuer of access tokens; null if no tokens are accepted. */
  readonly openIdConnectUrl: string | null;
  readonly scopes: readonly string[];
}

/**
 * API keys have no scopes, but the list must not be empty. Some verifiers of a card leave out an empty list and others
 * do not, and with the list the name of the required scheme is lost.
 */
const ANY_KEY = ['call'];

/** How clients authenticate: with an API key in one of two headers, or with an access token if an issuer is known. */
function securityOf({
  openIdConnectUrl,
  scopes,
}: CardAuth): Pick<AgentCard, 'securitySchemes' | 'securityRequirements'> {
  const token = openIdConnectUrl !== null;
  return {
    securitySchemes: {
      bearer: { httpAuthSecurityScheme: { description: 'An API key of this gateway', scheme: 'bearer' } },
      apiKey: { apiKeySecurityScheme: { description: 'The same API key', location: 'header', name: 'x-api-key' } },
      ...(token
        ? { openIdConnect: { openIdConnectSecurityScheme: { description: 'An access token', openIdConnectUrl } } }
        : {}),
    },
    securityRequirements: [
      { schemes: { bearer: { list: ANY_KEY } } },
      { schemes: { apiKey: { list: ANY_KEY } } },
      ...(token ? [{ schemes: { openIdConnect: { list: scopes.length > 0 ? scopes : ['openid'] } } }] : []),
    ],
  };
}
