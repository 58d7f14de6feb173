import { isObject } from '#wire';
import type { AgentCard, AgentExtension, AgentSkill } from './agent-card.ts';

/**
 * The part of an agent's card that does not depend on its address or its callers. It is bounded in size and safe to
 * publish.
 */
export interface CardContent extends Pick<AgentCard, 'provider' | 'documentationUrl' | 'iconUrl'> {
  /** Texts and lists are empty if the card lacks the member. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
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

const VALUES_MAX = 500;
const PARAM_TEXT_MAX = 8_192;
const KEY_MAX = 128;

const PROTOTYPE_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);
const NOWHERE = 'nowhere.invalid';
const HOSTLESS: ReadonlySet<string> = new Set(['javascript:', 'data:', 'vbscript:', 'file:', 'blob:']);

type Plain = string | number | boolean | readonly Plain[] | { readonly [key: string]: Plain };

/**
 * The parameters of an untrusted extension, cleaned for a signed card. Empty values and null are dropped, because
 * verifiers differ in how they treat them. Names of Object.prototype are dropped. URLs are dropped, because a call to
 * one would bypass the gateway. undefined if nothing is left.
 */
export function plainParams(value: unknown): { readonly [key: string]: Plain } | undefined {
  let remaining = VALUES_MAX;

  const read = (one: unknown): Plain | undefined => {
    if (remaining-- <= 0) return undefined;
    if (typeof one === 'string')
      return one !== '' && one.length <= PARAM_TEXT_MAX && one.isWellFormed() && !isAddress(one) ? one : undefined;
    if (typeof one === 'boolean') return one;
    if (typeof one === 'number') return Number.isFinite(one) ? one : undefined;
    if (Array.isArray(one)) {
      const values = one
        .slice(0, remaining)
        .map(read)
        .filter((element) => element !== undefined);
      return values.length > 0 ? values : undefined;
    }
    return typeof one === 'object' && one !== null ? readObject(one as Readonly<Record<string, unknown>>) : undefined;
  };

  const readObject = (one: Readonly<Record<string, unknown>>): { readonly [key: string]: Plain } | undefined => {
    const members: [string, Plain][] = [];
    for (const key of Object.keys(one)) {
      if (remaining <= 0) break;
      if (key === '' || key.length > KEY_MAX || !key.isWellFormed() || PROTOTYPE_KEYS.has(key) || isAddress(key))
        continue;
      const plain = read(one[key]);
      if (plain !== undefined) members.push([key, plain]);
    }
    return members.length > 0 ? Object.fromEntries(members) : undefined;
  };

  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? readObject(value as Readonly<Record<string, unknown>>)
    : undefined;
}

/**
 * Whether a URL parser would read a host in a text: true for `https:host` and `\\host`, false for `km/h` and `note: 1`.
 */
function isAddress(text: string): boolean {
  const url = URL.parse(text) ?? URL.parse(text, `https://${NOWHERE}`);
  return url !== null && (HOSTLESS.has(url.protocol) || (url.host !== '' && url.host !== NOWHERE));
}

/**
 * Code points that do not print: control, format (bidi overrides, zero width), surrogate, private and unassigned,
 * except tabs and line ends.
 */
const UNPRINTABLE = /[^\P{C}\t\n]/gu;
const MEDIA_TYPE = /^[\w!#$&^.+*-]{1,100}(?:\/[\w!#$&^.+*-]{1,100})?(?:; ?[\w.+-]{1,40}=[\w.+-]{1,40})?$/;
const URL_LENGTH_MAX = 2_048;

/**
 * Untrusted text for display: at most `max` characters, without code points that do not print. Empty for any other
 * value.
 */
export function cardText(value: unknown, max: number): string {
  if (typeof value !== 'string') return '';
  // The text is cut first, so that a very long text costs no more than a short one.
  const text = value
    .slice(0, max * 2)
    .replace(UNPRINTABLE, '')
    .slice(0, max);
  // The cut may have split a surrogate pair.
  return (text.isWellFormed() ? text : text.slice(0, -1)).trim();
}

function cardTexts(value: unknown, countMax: number, max: number): readonly string[] {
  return distinct(value, countMax, (text) => cardText(text, max) || null);
}

/**
 * The media types of a list, such as `text/plain`. Types without a subtype are accepted too, because old cards have
 * them.
 */
function mediaTypes(value: unknown): readonly string[] {
  return distinct(value, 64, (text) => (typeof text === 'string' && MEDIA_TYPE.test(text) ? text : null));
}

/** A link for people: http or https without credentials. null for any other value. */
function webUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > URL_LENGTH_MAX) return null;
  const url = URL.parse(value);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return null;
  return url.username === '' && url.password === '' && url.href.length <= URL_LENGTH_MAX ? url.href : null;
}

export function membersOfValue(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

export function elementsOfValue(value: unknown, countMax: number): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, countMax) : [];
}

function distinct(value: unknown, countMax: number, read: (element: unknown) => string | null): readonly string[] {
  const values = elementsOfValue(value, countMax).map(read);
  return [...new Set(values.filter((text) => text !== null))];
}
