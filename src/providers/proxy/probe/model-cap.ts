import type { CapField, CapName, ModelFacts } from '#config';
import { readCapRefusal } from '#config/refused-cap';
import { BOUNDS, foreignObject, isObject } from '#wire';
import { mustSucceed, wordsOf, type ProbeResponse, ProbeFailure } from './ask.ts';

export type Chat = (more: object) => Promise<ProbeResponse>;

/** The first answer of a model, and the name of the cap that the model accepted. */
export interface FirstAnswer {
  readonly text: string;
  readonly name: CapName;
  /** The cap as fields of the request. */
  readonly cap: Readonly<Record<string, number>>;
  /** Names of the cap that the model refused before. */
  readonly refused: readonly CapName[];
}

const NAMES: readonly CapName[] = ['max_tokens', 'max_completion_tokens', 'none'];
/** Some reasoning models answer 400 if the cap leaves no room for visible text, so a second, larger cap is tried. */
const SMALL = [1, 1024];
const NO_ROOM = /output limit was reached|higher max_tokens/i;
/** More tokens than any model can produce. */
const LARGE = 100_000_000;

/** The result of a failed request. The model has answered before, so this failure proves nothing. */
const NO_ANSWER: ProbeResponse = { status: 0, headers: {}, text: '' };

type CapFacts = Pick<ModelFacts, 'cap' | 'maxOutputTokens'>;

/**
 * Asks for the shortest possible answer. Tries the cap's name from the file first, then the other names, until the
 * model accepts one. Rejects with ProbeFailure, also if the model accepts only another name than the file's.
 */
export async function firstAnswer(chat: Chat, { cap: capName }: CapFacts): Promise<FirstAnswer> {
  const refused: CapName[] = [];
  for (const name of capName === undefined ? NAMES : [capName, ...NAMES.filter((other) => other !== capName)]) {
    const { answer, cap } = await askSmall(chat, name);
    if (name !== 'none' && isNameRefused(answer, name)) {
      refused.push(name);
      continue;
    }
    mustSucceed(answer);
    if (capName !== undefined && refused.length > 0)
      throw new ProbeFailure(`refuses the name ${capName}: write params.cap = "${name}"`);
    return { text: answer.text, name, cap, refused };
  }
  throw new ProbeFailure('refuses every name of the cap');
}

async function askSmall(
  chat: Chat,
  name: CapName,
): Promise<{ answer: ProbeResponse; cap: Readonly<Record<string, number>> }> {
  for (const tokens of SMALL) {
    const cap = name === 'none' ? {} : { [name]: tokens };
    const answer = await chat(cap);
    const noRoom = answer.status === 400 && NO_ROOM.test(wordsOf(answer.text));
    if (!noRoom || tokens === SMALL.at(-1)) return { answer, cap };
  }
  throw new Error('a small cap is not possible');
}

const isNameRefused = ({ status, text }: ProbeResponse, name: CapField): boolean =>
  readCapRefusal(status, Buffer.from(text), name, 1)?.kind === 'name';

/** Advice on facts about the cap that the file lacks. Sends up to two more requests to the model. */
export async function adviceOnCap(ask: Chat, first: FirstAnswer, facts: CapFacts): Promise<readonly string[]> {
  const chat: Chat = (more) => ask(more).catch(() => NO_ANSWER);
  const name = facts.cap === undefined ? await adviceOnName(chat, first) : null;
  const bound = await adviceOnBound(chat, first.name, facts.maxOutputTokens);
  return [name, bound].filter((advice) => advice !== null);
}

async function adviceOnName(chat: Chat, { text, name, cap, refused }: FirstAnswer): Promise<string | null> {
  const write = (right: CapName, why: string) => `write params.cap = "${right}": ${why}`;
  if (name === 'none') return write('none', 'it supports no cap, so the gateway cuts the output at the locked amount');
  const ignored = ignores(text, cap);
  if (refused.length > 0)
    return ignored
      ? write('none', `it refuses ${refused.join(', ')} and ignores ${name}`)
      : write(name, `it refuses ${refused.join(', ')}`);
  const other = name === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  const { answer, cap: otherCap } = await askSmall(chat, other);
  const fails = answer.status >= 400 ? 'refuses' : ignores(answer.text, otherCap) ? 'ignores' : null;
  if (ignored)
    return fails === null
      ? write(other, `it ignores ${name}`)
      : write('none', `it ignores ${name} and ${fails} ${other}`);
  return fails === null ? null : write(name, `it ${fails} ${other}`);
}

/** Tells whether the model produced more tokens than the cap allows. */
function ignores(text: string, cap: Readonly<Record<string, number>>): boolean {
  const usage = foreignObject(text, BOUNDS.probed)?.['usage'];
  return isObject(usage) && Number(usage['completion_tokens']) > Object.values(cap)[0]!;
}

async function adviceOnBound(chat: Chat, name: CapName, limit: number | null): Promise<string | null> {
  const most = name === 'none' ? null : await boundOf(chat, name, limit ?? LARGE);
  if (most !== null)
    return `write params.max_output_tokens = ${most}: it gives no more${limit === null ? '' : `, and the file says ${limit}`}`;
  if (limit !== null) return null;
  return 'the maximum number of tokens of an answer is not known. Set params.max_output_tokens. Otherwise a call without max_tokens locks the price of all tokens that context_length leaves';
}

/**
 * Asks with a cap of `cap` tokens. Returns the limit that the refusal names, or null if the request isn't refused or
 * the refusal names no limit.
 */
async function boundOf(chat: Chat, name: CapField, cap: number): Promise<number | null> {
  const { status, text } = await chat({ [name]: cap });
  const refusal = readCapRefusal(status, Buffer.from(text), name, cap);
  return refusal?.kind === 'bound' && refusal.lasting ? refusal.tokens : null;
}
