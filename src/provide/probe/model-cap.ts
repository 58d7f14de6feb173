import { readCapRefusal, type CapField, type CapName } from '#wire';
import type { ModelFacts } from '#config';
import { mustSucceed, wordsOf, type Answer } from './ask.ts';
import { ProbeFailure } from './check.ts';

/** Asks the model one small thing. */
export type Chat = (more: object) => Promise<Answer>;

/** The first answer of a model, and how its cap had to be sent to get it. */
export interface FirstAnswer {
  readonly text: string;
  readonly name: CapName;
  /** The cap as a part of a request. */
  readonly cap: Readonly<Record<string, number>>;
  /** Names that were refused before. */
  readonly refused: readonly CapName[];
}

const NAMES: readonly CapName[] = ['max_tokens', 'max_completion_tokens', 'none'];
/** Reasoning models answer 400 where a cap leaves no room for a word. */
const SMALL = [1, 1024];
const NO_ROOM = /output limit was reached|higher max_tokens/i;
/** More than any model gives. */
const LARGE = 100_000_000;

/** Stands for a failed question: the model has answered before, so the failure says nothing. */
const NO_ANSWER: Answer = { status: 0, headers: {}, text: '' };

type CapFacts = Pick<ModelFacts, 'cap' | 'maxOutputTokens'>;

/**
 * Asks for as little as can be, by the name that the file says, else by each name until one is not refused. Rejects
 * with ProbeFailure.
 */
export async function firstAnswer(chat: Chat, { cap: said }: CapFacts): Promise<FirstAnswer> {
  const refused: CapName[] = [];
  for (const name of said === undefined ? NAMES : [said, ...NAMES.filter((other) => other !== said)]) {
    const { answer, cap } = await askSmall(chat, name);
    if (name !== 'none' && isNameRefused(answer, name)) {
      refused.push(name);
      continue;
    }
    mustSucceed(answer);
    if (said !== undefined && refused.length > 0)
      throw new ProbeFailure(`refuses the name ${said}: write params.cap = "${name}"`);
    return { text: answer.text, name, cap, refused };
  }
  throw new ProbeFailure('refuses every name of the cap');
}

async function askSmall(chat: Chat, name: CapName): Promise<{ answer: Answer; cap: Readonly<Record<string, number>> }> {
  for (const tokens of SMALL) {
    const cap = name === 'none' ? {} : { [name]: tokens };
    const answer = await chat(cap);
    const noRoom = answer.status === 400 && NO_ROOM.test(wordsOf(answer.text));
    if (!noRoom || tokens === SMALL.at(-1)) return { answer, cap };
  }
  throw new Error('there is no small cap');
}

const isNameRefused = ({ status, text }: Answer, name: CapField): boolean =>
  readCapRefusal(status, Buffer.from(text), name, 1)?.of === 'name';

/** Advice on the cap that the file lacks. It asks the model up to twice more. */
export async function adviceOnCap(ask: Chat, first: FirstAnswer, facts: CapFacts): Promise<readonly string[]> {
  const chat: Chat = (more) => ask(more).catch(() => NO_ANSWER);
  const name = facts.cap === undefined ? await adviceOnName(chat, first) : null;
  const bound = await adviceOnBound(chat, first.name, facts.maxOutputTokens);
  return [name, bound].filter((advice) => advice !== null);
}

async function adviceOnName(chat: Chat, { text, name, cap, refused }: FirstAnswer): Promise<string | null> {
  const write = (right: CapName, why: string) => `write params.cap = "${right}": ${why}`;
  if (name === 'none') return write('none', 'it takes no cap, so the gateway cuts the output where it was locked');
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

/** The model said more than its cap. */
function ignores(text: string, cap: Readonly<Record<string, number>>): boolean {
  try {
    const { usage } = JSON.parse(text) as { readonly usage?: { readonly completion_tokens?: unknown } };
    return Number(usage?.completion_tokens) > Object.values(cap)[0]!;
  } catch {
    return false;
  }
}

async function adviceOnBound(chat: Chat, name: CapName, said: number | null): Promise<string | null> {
  const most = name === 'none' ? null : await boundOf(chat, name, said ?? LARGE);
  if (most !== null)
    return `write params.max_output_tokens = ${most}: it gives no more${said === null ? '' : `, and the file says ${said}`}`;
  if (said !== null) return null;
  return 'the most tokens of an answer are not known: write params.max_output_tokens, or a call without max_tokens locks the price of what context_length leaves';
}

/** The bound that a refusal of `asked` tokens tells; null where it is not refused, or says nothing of a bound. */
async function boundOf(chat: Chat, name: CapField, asked: number): Promise<number | null> {
  const { status, text } = await chat({ [name]: asked });
  const refusal = readCapRefusal(status, Buffer.from(text), name, asked);
  return refusal?.of === 'bound' && refusal.lasting ? refusal.tokens : null;
}
