import type { AgentCard, AgentExtension, AgentSkill } from './agent-card.ts';
import { cardText, cardTexts, elementsOfValue, mediaTypes, membersOfValue, webUrl } from './card-text.ts';
import { plainParams } from './plain-params.ts';

/**
 * The part of an agent's card that does not depend on its address or its callers. It is bounded in size and safe to
 * publish.
 */
export interface CardContent extends Pick<AgentCard, 'provider' | 'documentationUrl' | 'iconUrl'> {
  /** Texts and lists are empty if the card lacks the member. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** The agent has an extended card for authenticated clients. */
  readonly extended: boolean;
  readonly extensions: readonly AgentExtension[];
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
  readonly skills: readonly AgentSkill[];
}

const NAME_MAX = 200;
const TEXT_MAX = 8_000;
const SKILLS_MAX = 200;
const EXTENSIONS_MAX = 32;
const URI_MAX = 512;

/**
 * Reads the known members of a card of either version from an untrusted JSON value. Never throws: members of a wrong
 * type are dropped.
 */
export function readContent(card: unknown): CardContent {
  const members = membersOfValue(card);
  const capabilities = membersOfValue(members['capabilities']);
  const documentationUrl = webUrl(members['documentationUrl']);
  const iconUrl = webUrl(members['iconUrl']);
  return {
    name: cardText(members['name'], NAME_MAX),
    description: cardText(members['description'], TEXT_MAX),
    version: cardText(members['version'], 64),
    ...readProvider(members['provider']),
    ...(documentationUrl === null ? {} : { documentationUrl }),
    ...(iconUrl === null ? {} : { iconUrl }),
    extended: capabilities['extendedAgentCard'] === true || members['supportsAuthenticatedExtendedCard'] === true,
    extensions: elementsOfValue(capabilities['extensions'], EXTENSIONS_MAX).flatMap(readExtension),
    inputModes: mediaTypes(members['defaultInputModes']),
    outputModes: mediaTypes(members['defaultOutputModes']),
    skills: readSkills(members['skills']),
  };
}

/** The provider is dropped unless it has both members, because readers of 0.3 need both. */
function readProvider(value: unknown): Pick<AgentCard, 'provider'> {
  const members = membersOfValue(value);
  const organization = cardText(members['organization'], NAME_MAX);
  const url = webUrl(members['url']);
  return organization !== '' && url !== null ? { provider: { organization, url } } : {};
}

function readExtension(value: unknown): readonly AgentExtension[] {
  const members = membersOfValue(value);
  const uri = cardText(members['uri'], URI_MAX);
  if (uri === '' || uri !== members['uri']) return [];
  const description = cardText(members['description'], TEXT_MAX);
  const params = plainParams(members['params']);
  return [
    {
      uri,
      ...(description === '' ? {} : { description }),
      ...(members['required'] === true ? { required: true as const } : {}),
      ...(params === undefined ? {} : { params }),
    },
  ];
}

/**
 * A skill without an id uses its name as id; without both it is dropped. Of two skills with the same id the first
 * counts.
 */
function readSkills(value: unknown): readonly AgentSkill[] {
  const skills = new Map<string, AgentSkill>();
  for (const element of elementsOfValue(value, SKILLS_MAX)) {
    const members = membersOfValue(element);
    const name = cardText(members['name'], NAME_MAX);
    const id = cardText(members['id'], NAME_MAX) || name;
    if (id === '' || skills.has(id)) continue;
    const tags = cardTexts(members['tags'], 32, 64);
    const examples = cardTexts(members['examples'], 32, 2_000);
    const inputModes = mediaTypes(members['inputModes']);
    const outputModes = mediaTypes(members['outputModes']);
    skills.set(id, {
      id,
      name: name || id,
      description: cardText(members['description'], TEXT_MAX) || name || id,
      tags: tags.length > 0 ? tags : ['agent'],
      ...(examples.length > 0 ? { examples } : {}),
      ...(inputModes.length > 0 ? { inputModes } : {}),
      ...(outputModes.length > 0 ? { outputModes } : {}),
    });
  }
  return [...skills.values()];
}
