import { byService, type Offer } from '#gateway';
import type { AgentCard, AgentSkill } from './agent-card.ts';
import { cardText } from './card-text.ts';
import { rewriteCard, type CardTerms } from './rewrite-card.ts';

interface OwnTerms extends Pick<CardTerms, 'url' | 'auth' | 'x402'> {
  /** The version of this gateway. */
  readonly version: string;
}

const SKILLS_MAX = 200;
const TEXT_MAX = 2_000;

const DESCRIPTION =
  'One address for many agents, paid by use. Each skill is an agent: name it by the skill’s id, as tenant or in the message’s metadata as ' +
  '"tollgate/agent". Each also has a card and an address of its own, at /a2a/ and its id.';

/**
 * The gateway's own card, with one skill for each agent service of the catalogue, by name. `offers`: the offers of all
 * agents.
 */
export function ownCard(offers: readonly Offer[], { version, ...terms }: OwnTerms): AgentCard {
  const skills = byService(offers).slice(0, SKILLS_MAX).map(skillOf);
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
  const name = cardText(displayName, TEXT_MAX) || service;
  const description = offers.map((offer) => cardText(offer.description, TEXT_MAX)).find((text) => text !== '') ?? name;
  return { id: service, name, description, tags: ['agent'] };
}
