/**
 * Describes the expected value, to follow the name of a field: "must be a number or null". The validator's own messages
 * ("must NOT have fewer than 1 characters") are hard to read.
 */
export function mustBe({
  keyword,
  params,
}: {
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
}): string {
  const limit = Number(params['limit']);
  switch (keyword) {
    case 'type':
      return `must be ${either(
        [params['type']]
          .flat()
          .flatMap((type) => String(type).split(','))
          .map(typeWords),
      )}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as readonly unknown[]).map(String).join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(params['allowedValue'])}`;
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${counted(limit, 'character')}`;
    case 'minItems':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} entries`;
    case 'maxItems':
      return `must have at most ${limit} ${limit === 1 ? 'entry' : 'entries'}`;
    case 'uniqueItems':
      return 'must not have an entry twice';
    case 'maxProperties':
      return `must have at most ${counted(limit, 'member')}`;
    case 'minimum':
      return `must be ${limit} or more`;
    case 'maximum':
      return `must be ${limit} or less`;
    case 'exclusiveMinimum':
      return `must be more than ${limit}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}`;
    case 'multipleOf':
      return `must be a multiple of ${String(params['multipleOf'])}`;
    case 'format':
      return `must be of the form ${String(params['format'])}`;
    case 'pattern':
      return `must match ${String(params['pattern'])}`;
    default:
      return 'is not valid';
  }
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  null: 'null',
};
const typeWords = (type: string): string => TYPES[type] ?? type;

const either = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)!}`;

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
