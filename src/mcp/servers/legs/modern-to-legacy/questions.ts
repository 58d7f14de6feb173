import {
  isObject,
  type JsonObject,
  type Members,
  membersOf,
  RawJsonError,
  type RequestId,
  type RequestMessage,
} from '#wire';

/** What a server asked in the middle of one call, and the client has not answered yet. */
export interface Questions {
  readonly size: number;
  /** Characters of what is open. */
  readonly chars: number;
  add(request: RequestMessage): void;
  /** The server does not want it answered any more. */
  drop(id: unknown): void;
  /** `inputRequests` as JSON text. */
  toInputRequests(): string;
  /**
   * Takes the answers out of a request that goes on with the call: responses for the server, as JSON text. What is
   * not answered, or by something that cannot be an answer, stays to be asked again.
   */
  answer(request: RequestMessage): readonly string[];
}

interface Question {
  readonly key: string;
  readonly id: RequestId;
  readonly idText: string;
  /** `{"method":…,"params":…}`. */
  readonly text: string;
}

/** What one call may have open at once. */
export const QUESTIONS_MAX = 32;
export const QUESTIONS_CHARS_MAX = 4 * 1024 * 1024;

export function createQuestions(): Questions {
  let open: readonly Question[] = [];
  let count = 0;
  return {
    get size() {
      return open.length;
    },
    get chars() {
      return open.reduce((sum, { text }) => sum + text.length, 0);
    },
    add({ id, idText, method, text, members }) {
      const params = members.get('params');
      const asked = `{"method":${JSON.stringify(method)}${params ? `,"params":${text.slice(params.start, params.end)}` : ''}}`;
      open = [...open, { key: `input-${++count}`, id, idText, text: asked }];
    },
    drop(id) {
      open = open.filter((question) => question.id !== id);
    },
    toInputRequests: () => `{${open.map(({ key, text }) => `"${key}":${text}`).join(',')}}`,
    answer({ text, params, members }) {
      const given = params?.['inputResponses'];
      if (!isObject(given)) return [];
      const places = placesOf(text, members);
      const answered = open.filter(({ key }) => places.has(key) && isAnswer(given[key]));
      open = open.filter((question) => !answered.includes(question));
      return answered.map(({ key, idText }) => `{"jsonrpc":"2.0","id":${idText},"result":${at(text, places, key)}}`);
    },
  };
}

/** Empty where a key stands twice: that is no answer to anything. */
function placesOf(text: string, members: Members): Members {
  const { start } = membersOf(text, members.get('params')!.start).get('inputResponses')!;
  try {
    return membersOf(text, start);
  } catch (error) {
    if (error instanceof RawJsonError) return new Map();
    throw error;
  }
}

/** A result by itself. Some clients wrap it, which no server would understand. */
const isAnswer = (value: unknown) => isObject(value) && !('method' in value) && !('result' in value);

function at(text: string, members: Members, key: string): string {
  const { start, end } = members.get(key)!;
  return text.slice(start, end);
}

/** Whether a client that declares `capabilities` can be asked this. */
export function canAnswer(capabilities: JsonObject, { method, params }: RequestMessage): boolean {
  if (method === 'roots/list') return isObject(capabilities['roots']);
  if (method === 'sampling/createMessage') {
    const { sampling } = capabilities;
    return isObject(sampling) && (params?.['tools'] === undefined || isObject(sampling['tools']));
  }
  if (method !== 'elicitation/create') return false;
  const { elicitation } = capabilities;
  if (!isObject(elicitation)) return false;
  // Without a word about modes it is forms, as it was before there were others.
  return params?.['mode'] === 'url'
    ? isObject(elicitation['url'])
    : isObject(elicitation['form']) || !isObject(elicitation['url']);
}

/** Whether a client that declares `capabilities` can be asked anything at all. */
export const canBeAsked = (capabilities: JsonObject): boolean =>
  ['elicitation', 'sampling', 'roots'].some((key) => isObject(capabilities[key]));
