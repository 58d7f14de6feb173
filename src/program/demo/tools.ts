import { countTokens, type JsonObject } from './request.ts';

/** The sources of time and chance. Tests replace them. */
export interface Surroundings {
  /** Epoch milliseconds. */
  now(): number;
  roll(sides: number): number;
}

/** The answer of a tool: a text, and the same facts as data that match its `outputSchema`. */
export interface Said {
  readonly text: string;
  readonly data: JsonObject;
}

export interface Tool {
  /** The tool's entry in `tools/list`. */
  readonly definition: {
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly inputSchema: JsonObject;
    readonly outputSchema: JsonObject;
    readonly annotations: JsonObject;
  };
  /** Throws ArgumentError if an argument is wrong. */
  run(args: JsonObject): Said;
}

/**
 * An argument of a tool is missing or wrong. It is answered as the tool's error, so that a model can correct its
 * arguments.
 */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError';
}

export function createTools(around: Surroundings): readonly Tool[] {
  return [
    { definition: ROLL_DICE, run: (args) => rollDice(args, around) },
    { definition: TELL_TIME, run: (args) => tellTime(args, around) },
    { definition: WEIGH_WORDS, run: weighWords },
  ];
}

const schema = (properties: JsonObject, required: readonly string[]) =>
  ({ type: 'object', properties, required }) as const;
const integer = { type: 'integer' };
const text = { type: 'string' };

const ROLL_DICE = {
  name: 'roll_dice',
  title: 'Roll dice',
  description:
    'Rolls dice as players write them, such as "d20", "2d6" or "3d8+2", and says each of them and their sum.',
  inputSchema: schema(
    {
      dice: {
        ...text,
        default: '1d6',
        description: 'How many dice of how many sides, and what is added: "2d6+1"',
        examples: ['2d6+1', '2d6-1', '2d6', 'd20+1', 'd20-1', 'd20'],
      },
    },
    [],
  ),
  outputSchema: schema({ dice: text, rolls: { type: 'array', items: integer }, total: integer }, [
    'dice',
    'rolls',
    'total',
  ]),
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const TELL_TIME = {
  name: 'tell_time',
  title: 'Tell the time',
  description: 'Says what time and day it is in a time zone.',
  inputSchema: schema(
    { zone: { ...text, default: 'UTC', description: 'A time zone by its IANA name, such as "Asia/Tokyo"' } },
    [],
  ),
  outputSchema: schema({ zone: text, date: text, time: text, weekday: text }, ['zone', 'date', 'time', 'weekday']),
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const WEIGH_WORDS = {
  name: 'weigh_words',
  title: 'Weigh words',
  description:
    'Says what a text weighs: its words, characters and tokens, its heaviest word, and how long it takes to read aloud.',
  inputSchema: schema({ text: { ...text, description: 'The text' } }, ['text']),
  outputSchema: schema(
    { words: integer, characters: integer, tokens: integer, heaviest: text, seconds_aloud: integer },
    ['words', 'characters', 'tokens', 'heaviest', 'seconds_aloud'],
  ),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
};

const DICE_MAX = 100;
const SIDES_MAX = 1000;

function rollDice(args: JsonObject, { roll }: Surroundings): Said {
  const dice = stringOf(args, 'dice', '1d6');
  const [, count = '', sides = '', added = ''] =
    /^(\d{0,3})d(\d{1,4})([+-]\d{1,6})?$/i.exec(dice.replaceAll(' ', '')) ?? [];
  const [number, faces, more] = [Number(count || 1), Number(sides), Number(added)];
  if (number < 1 || number > DICE_MAX || faces < 2 || faces > SIDES_MAX)
    throw new ArgumentError(`dice must be 1 to ${DICE_MAX} dice of 2 to ${SIDES_MAX} sides, such as "2d6+1"`);
  const rolls = Array.from({ length: number }, () => roll(faces));
  const total = rolls.reduce((sum, each) => sum + each, more);
  const sum = `${rolls.join(' + ')}${more === 0 ? '' : ` ${more < 0 ? '-' : '+'} ${Math.abs(more)}`}`;
  return {
    text: sum === String(total) ? `${dice}: ${total}` : `${dice}: ${sum} = ${total}`,
    data: { dice, rolls, total },
  };
}

function tellTime(args: JsonObject, { now }: Surroundings): Said {
  const zone = stringOf(args, 'zone', 'UTC');
  const format = (options: Intl.DateTimeFormatOptions) => {
    try {
      return new Intl.DateTimeFormat('en-CA', { ...options, timeZone: zone }).format(now());
    } catch {
      throw new ArgumentError(
        `zone must be the IANA name of a time zone, such as "Asia/Tokyo", not ${JSON.stringify(zone.slice(0, 50))}`,
      );
    }
  };
  const date = format({ dateStyle: 'short' });
  const time = format({ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
  const weekday = format({ weekday: 'long' });
  return { text: `It is ${time} on ${weekday}, ${date}, in ${zone}.`, data: { zone, date, time, weekday } };
}

/** Speed of a calm reader. */
const WORDS_PER_SECOND = 2.5;
const TEXT_MAX = 100_000;
/** Counts characters as people see them: a flag is one character. */
const CHARACTERS = new Intl.Segmenter('en');

function weighWords(args: JsonObject): Said {
  const written = stringOf(args, 'text', null);
  if (written.length > TEXT_MAX) throw new ArgumentError(`text must have at most ${TEXT_MAX} characters`);
  const all = written.match(/[\p{L}\p{N}][\p{L}\p{M}\p{N}'’-]*/gu) ?? [];
  const heaviest = all.reduce((longest, word) => (word.length > longest.length ? word : longest), '');
  const data = {
    words: all.length,
    characters: [...CHARACTERS.segment(written)].length,
    tokens: countTokens(written),
    heaviest,
    seconds_aloud: Math.ceil(all.length / WORDS_PER_SECOND),
  };
  const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;
  const sizes = `${counted(data.words, 'word')}, ${counted(data.characters, 'character')} and ${counted(data.tokens, 'token')}`;
  const rest =
    heaviest === ''
      ? ''
      : ` Its heaviest word is "${heaviest}"; to read it aloud takes ${counted(data.seconds_aloud, 'second')}.`;
  return { text: `The text has ${sizes}.${rest}`, data };
}

function stringOf(args: JsonObject, name: string, fallback: string | null): string {
  const value = args[name] ?? fallback;
  if (typeof value !== 'string') throw new ArgumentError(`${name} must be a text`);
  return value;
}
