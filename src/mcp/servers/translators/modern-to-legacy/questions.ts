import {
  isObject,
  type JsonObject,
  type Members,
  membersOf,
  RawJsonError,
  type RequestId,
  type RequestMessage,
} from '#wire';

/** Questions that a server asked during one call and that the client has not answered yet. */
export interface Questions {
  readonly size: number;
  /** Characters of all open questions. */
  readonly chars: number;
  add(request: RequestMessage): void;
  /** Drops a question that the server has cancelled. */
  drop(id: unknown): void;
  /** `inputRequests` as JSON text. */
  toInputRequests(): string;
  /**
   * Takes the answers from a request that continues the call, and returns them as responses for the server (JSON text).
   * Questions without a usable answer stay, and are asked again.
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

/** Most open questions of one call. */
export const QUESTIONS_MAX = 32;
export const QUESTIONS_CHARS_MAX = 4 * 1024 * 1024;

export function createQuestions(): Questions {
  return new OpenQuestions();
}

class OpenQuestions implements Questions {
  #open: readonly Question[] = [];
  #count = 0;

  get size(): number {
    return this.#open.length;
  }

  get chars(): number {
    return this.#open.reduce((sum, { text }) => sum + text.length, 0);
  }

  add({ id, idText, method, text, members }: RequestMessage): void {
    const params = members.get('params');
    // `params` is always there, because some clients cannot read a question without it.
    const asked = `{"method":${JSON.stringify(method)},"params":${params ? text.slice(params.start, params.end) : '{}'}}`;
    this.#open = [...this.#open, { key: `input-${++this.#count}`, id, idText, text: asked }];
  }

  drop(id: unknown): void {
    this.#open = this.#open.filter((question) => question.id !== id);
  }

  toInputRequests(): string {
    return `{${this.#open.map(({ key, text }) => `"${key}":${text}`).join(',')}}`;
  }

  answer({ text, params, members }: RequestMessage): readonly string[] {
    const given = params?.['inputResponses'];
    if (!isObject(given)) return [];
    const places = placesOf(text, members);
    const answered = this.#open.filter(({ key }) => places.has(key) && isAnswer(given[key]));
    this.#open = this.#open.filter((question) => !answered.includes(question));
    return answered.map(({ key, idText }) => `{"jsonrpc":"2.0","id":${idText},"result":${at(text, places, key)}}`);
  }
}

/** The places of the answers; empty if a key occurs twice. */
function placesOf(text: string, members: Members): Members {
  const { start } = membersOf(text, members.get('params')!.start).get('inputResponses')!;
  try {
    return membersOf(text, start);
  } catch (error) {
    if (error instanceof RawJsonError) return new Map();
    throw error;
  }
}

/** Whether a value is a plain result. Some clients wrap the result, which no server would understand. */
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
  // Without any mode it means forms, as in revisions before there were modes.
  return params?.['mode'] === 'url'
    ? isObject(elicitation['url'])
    : isObject(elicitation['form']) || !isObject(elicitation['url']);
}

/** Whether a client that declares `capabilities` can be asked anything at all. */
export const canBeAsked = (capabilities: JsonObject): boolean =>
  ['elicitation', 'sampling', 'roots'].some((key) => isObject(capabilities[key]));
