import { ANY_OBJECT, type ChatRequest, countTokens, ownWords, type Picture } from './request.ts';
import { exampleFor } from './tool-choice.ts';

/**
 * Returns the whole text of a model's answer, before `max_tokens` and `stop` cut it. The same request and choice give
 * the same text.
 */
export function composeAnswer(request: ChatRequest, choice: number): string {
  const last = request.messages.at(-1);
  const user = request.messages.findLast((message) => message.role === 'user');
  const seen = describePictures(user?.pictures ?? []);
  if (request.model.endsWith('echo')) return [user?.text ?? '', seen].filter((part) => part !== '').join('\n');
  const text = ownWords(user?.text ?? '')
    .slice(0, HEARD_MAX)
    .trim();
  if (request.answerSchema !== null && request.answerSchema !== ANY_OBJECT)
    return JSON.stringify(exampleFor(request.answerSchema, text) ?? {});
  const answerText = seen !== '' && text === '' ? '' : answerTo(text, request, choice);
  const answer =
    last?.role === 'tool'
      ? `The tool answered: ${last.text.slice(0, 500)}`
      : [seen, answerText].filter((part) => part !== '').join(' ');
  return request.answerSchema === null ? answer : JSON.stringify({ answer });
}

// The rules read only this many characters of a message. They are regular expressions, whose time may grow with the
// square of the text's length.
const HEARD_MAX = 4000;

interface Topic {
  readonly asks: RegExp;
  answer(text: string, request: ChatRequest, choice: number): string | null;
}

const GREETINGS = ['Hello!', 'Hi there!', 'Good to meet you!', 'Welcome!'];
const INVITATION = 'Try "count to 10", "what is 6 × 7?", "what is tollgate?" or "what does this cost?".';

// The first topic wins whose pattern matches and whose `answer` is not null.
const TOPICS: readonly Topic[] = [
  { asks: /\bcount\b/i, answer: countUp },
  {
    asks: /\bhow (?:many|long)\b|\bcount the\b/i,
    answer: (question) => {
      const text = /["“:]\s*([^"”]+)/.exec(question)?.[1]?.trim();
      return text === undefined
        ? null
        : `That is ${plural(wordsOf(text).length, 'word')} and ${plural(Array.from(text).length, 'character')}.`;
    },
  },
  { asks: /\bdice\b/i, answer: commentOn },
  {
    asks: /\d/,
    answer: (question) => {
      const sum = solve(question);
      return sum === null ? null : `${sum.question} = ${sum.result}`;
    },
  },
  {
    asks: /\b(?:bill(?:ed|ing)?|costs?|prices?|pay|paid|charged?|escrow|expensive|usage)\b/i,
    answer: (_said, request) =>
      `Here is your bill in words. Your prompt was ${plural(request.promptTokens, 'token')}, as I count them. Before I saw it, tollgate locked the most this call could cost from your escrow; ` +
      'when I am done it charges what was used, rounded up to a millionth of a dollar, and returns the rest. The exact figures are in `usage` at the end of this answer: tokens, and `usage.cost` in USD.',
  },
  {
    asks: /\btollgate\b|\bgateway\b|\bmarketplace\b/i,
    answer: () =>
      'tollgate is a gateway and marketplace for AI services. Chat models, MCP tools and A2A agents are peers in it: you call each through one address with one key, a provider is chosen for you, ' +
      'and every call is paid per use from your USDC balance: locked, forwarded, settled. I am the demo provider behind it, here so that your first call works.',
  },
  {
    asks: /\bwho are you\b|\byour name\b|\bwhat are you\b|\bwhat can you do\b|\bhelp\b/i,
    answer: () => `I am tollgate's demo model: a few dozen rules, no neural network. ${INVITATION}`,
  },
  { asks: /\b(?:thanks|thank you|cheers)\b/i, answer: () => 'You are welcome!' },
  {
    asks: /^\W*(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening)|hola|bonjour|hallo|ciao|say (?:hi|hello))\b/i,
    answer: (question, request, choice) =>
      `${pick(GREETINGS, question, request.seed + choice)} I am the demo model behind this gateway, and your call just went all the way through it. ${INVITATION}`,
  },
  {
    asks: /\b(?:tests?|ping)\b/i,
    answer: () => 'It works: your request reached the demo provider, and this is its answer.',
  },
];

function answerTo(text: string, request: ChatRequest, choice: number): string {
  for (const topic of TOPICS) {
    const answer = topic.asks.test(text) ? topic.answer(text, request, choice) : null;
    if (answer !== null) return answer;
  }
  if (text === '') return `You said nothing, and that is fine. ${INVITATION}`;
  const openings = ['You said', 'I read', 'I heard', 'Your words'];
  const quote = text.length > 200 ? `${text.slice(0, 200).toWellFormed()}…` : text;
  return `${pick(openings, text, request.seed + choice)}: "${quote}" (${plural(wordsOf(text).length, 'word')}, ${plural(countTokens(text), 'token')}). I am a demo with a few rules and no model behind me, so that is all I make of it. ${INVITATION}`;
}

const COUNT_MAX = 1000;

function countUp(text: string): string | null {
  const range = /\bcount\b(?:\s+from\s+(-?\d{1,9}))?.*?\b(?:to|until|till)\s+(-?\d{1,9})/i.exec(text);
  if (range === null) return null;
  const from = Number(range[1] ?? 1);
  const to = Number(range[2]);
  const step = to < from ? -1 : 1;
  const numbers = Array.from(
    { length: Math.min(Math.abs(to - from) + 1, COUNT_MAX) },
    (_, index) => from + index * step,
  );
  return numbers.join(', ') + (Math.abs(to - from) >= COUNT_MAX ? ', and so on.' : '.');
}

function describePictures(pictures: readonly Picture[]): string {
  if (pictures.length === 0) return '';
  const each = pictures.map(({ kind, host, bytes }) => {
    const what = kind === 'image' ? 'one of a kind I do not know' : `${/^[AS]/.test(kind) ? 'an' : 'a'} ${kind}`;
    return `${what} ${host === null ? `of ${sizeText(bytes ?? 0)} in the request` : `at ${host}`}`;
  });
  return `I got ${plural(pictures.length, 'image')}: ${each.join(', ')}.`;
}

function sizeText(bytes: number): string {
  return bytes < 1024 ? plural(bytes, 'byte') : `${Math.round(bytes / 1024)} KiB`;
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*/gu) ?? [];
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Picks an option by the text and the seed, so that the same request gets the same option again. */
function pick(options: readonly string[], text: string, seed: number): string {
  let sum = 0;
  for (const character of text) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  const index = (((sum + seed) % options.length) + options.length) % options.length;
  return options[index] ?? '';
}

/**
 * Finds an arithmetic expression in a text (`12 + 3 * (4 - 1)`, `add 2, 3 and 4`) and computes it. Returns null if the
 * text has no such expression.
 */
function solve(text: string): { readonly question: string; readonly result: string } | null {
  const list =
    /\b(?:add|sum(?: of)?|plus|total of)\b[^\d-]*(-?[\d.,\s]*\d(?:\s*(?:,|and|\+|plus)\s*-?\d[\d.]*)*)/i.exec(
      text,
    )?.[1];
  const numbers = list?.match(/-?\d+(?:\.\d+)?/g);
  if (numbers !== undefined && numbers !== null && numbers.length > 1) return solved(numbers.join(' + '));
  const expression = /[-(\d][\d\s.+\-*/×÷x()^]*[\d)]/i.exec(
    text
      .replaceAll(/\btimes\b/gi, '×')
      .replaceAll(/\bplus\b/gi, '+')
      .replaceAll(/\bminus\b/gi, '-')
      .replaceAll(/\bdivided by\b/gi, '/'),
  )?.[0];
  return expression !== undefined && /\d[\s)]*[+\-*/×÷x]/i.test(expression) ? solved(expression.trim()) : null;
}

function solved(question: string): { question: string; result: string } | null {
  const tokens = question.match(/\d+(?:\.\d+)?|[-+*/×÷x()]/gi) ?? [];
  if (tokens.length > 200) return null;
  let at = 0;
  const sum = (): number => {
    let value = product();
    while (tokens[at] === '+' || tokens[at] === '-')
      value = tokens[at++] === '+' ? value + product() : value - product();
    return value;
  };
  const product = (): number => {
    let value = atom();
    while (/^[*/×÷x]$/i.test(tokens[at] ?? ''))
      value = /[/÷]/.test(tokens[at++] ?? '') ? value / atom() : value * atom();
    return value;
  };
  const atom = (): number => {
    const token = tokens[at++];
    if (token === '-') return -atom();
    if (token !== '(') return Number(token);
    const value = sum();
    return tokens[at++] === ')' ? value : NaN;
  };
  const value = sum();
  if (at !== tokens.length || Number.isNaN(value)) return null;
  return {
    question,
    result: Number.isFinite(value)
      ? String(Number(value.toPrecision(12)))
      : 'not a number: there is a division by zero in it',
  };
}

const ROLL = /(?<![\w.])(\d{0,3})d(\d{1,4})([+-]\d{1,6})?:(?:[ \d+-]*=)? *(-?\d{1,9})/i;

/**
 * Returns a remark on a roll such as `2d6: 4 + 2 = 6`, depending on how likely the sum was. Returns null for a text
 * without a roll.
 */
export function commentOn(text: string): string | null {
  const [, count, sides, added, sum] = ROLL.exec(text) ?? [];
  if (sides === undefined) return null;
  const [dice, faces, more, total] = [Number(count || 1), Number(sides), Number(added ?? 0), Number(sum)];
  const expected = (dice * (faces + 1)) / 2 + more;
  if (total === dice * faces + more) return `${total} is the most that these dice have. Stop while you are ahead.`;
  if (total === dice + more) return `${total} is the least that these dice have. From here it can only get better.`;
  if (total === expected) return `${total} is just what was to be expected.`;
  return `${total} is ${total > expected ? 'above' : 'below'} the ${expected} that was to be expected.`;
}
