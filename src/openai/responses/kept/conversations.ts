import { GatewayError, isObject, RawJsonError, splice, uniqueMembersOf, withMembers } from '#wire';
import { authorise, type Caller } from '#gateway';
import { isStorable, type KeptContent, type KeptResponse, type KeptResponses, ownerOf } from '#tasks';
import type { Json, ResponsesBody } from '../responses-schema.ts';
import { keepsNone, noItem, noPrevious } from './errors.ts';
import { isResponseId, responseOfItem, typeOf } from './kept-ids.ts';

interface ConversationsOptions {
  /** null if the gateway keeps no responses. */
  readonly kept: KeptResponses | null;
  /** Most items and bytes of a request. */
  readonly itemsMax: number;
  readonly bytesMax: number;
}

/** A request whose references are replaced by what they name. */
interface ResolvedRequest {
  readonly asked: ResponsesBody;
  /** The JSON text of `asked`. */
  readonly bytes: Buffer;
}

/** Conversations that requests continue by naming kept responses and their items. */
export interface Conversations {
  /**
   * Replaces `previous_response_id` and the `item_reference` items of a request by the items themselves. Rejects with
   * GatewayError.
   */
  resolve(asked: ResponsesBody, bytes: Buffer, caller: Caller): Promise<ResolvedRequest>;
  /** All items that the model got with the request of a kept response, each with an id. */
  inputOf(response: KeptResponse, caller: Caller): Promise<readonly Json[]>;
}

/** Kept responses with their content, and items in which nothing refers to others any more. */
interface Opened {
  readonly used: readonly KeptResponse[];
  readonly items: readonly Json[];
}

export function createConversations({ kept, itemsMax, bytesMax }: ConversationsOptions): Conversations {
  const tooLarge = (what: string) =>
    new GatewayError(
      'invalid_request',
      `The conversation that this request continues has more than ${what} with its input, which is the most that a request may have. Begin a new one, with a summary of this one`,
      { param: 'input' },
    );

  /** The responses that `previous` continues, and itself, the first one first. */
  async function lineageOf(previous: string | null | undefined, caller: Caller): Promise<readonly KeptResponse[]> {
    if (previous === undefined || previous === null) return [];
    if (kept === null) throw keepsNone('previous_response_id', 'previous_response_id');
    if (!isResponseId(previous)) throw noPrevious(previous);
    const lineage = await kept.lineage(previous, ownerOf(caller));
    const [first] = lineage;
    if (first === undefined) throw noPrevious(previous);
    if (first.previous !== null) throw noPrevious(first.previous);
    return lineage;
  }

  /** The responses that have the items with these ids, by the id of the item. */
  async function holdersOf(ids: readonly string[], caller: Caller): Promise<ReadonlyMap<string, KeptResponse>> {
    if (ids.length === 0) return new Map();
    const owner = ownerOf(caller);
    const responseOf = new Map(ids.map((id) => [id, responseOfItem(id)]));
    const [named, made] = await Promise.all([
      kept!.ofItems(
        ids.filter((id) => isStorable(id)),
        owner,
      ),
      kept!.findAll(
        [...new Set(responseOf.values())].filter((id) => id !== null),
        owner,
      ),
    ]);
    const found = new Map(made.map((one) => [one.id, one]));
    const holderOf = (id: string) => named.get(id) ?? found.get(responseOf.get(id) ?? '');
    return new Map(ids.flatMap((id) => [[id, holderOf(id)] as const]).filter(isFound));
  }

  /** Reads responses that are not read yet. Throws GatewayError if they are too large for a request. */
  async function readMore(read: Map<string, KeptContent>, responses: readonly KeptResponse[]): Promise<void> {
    const more = [...new Map(responses.map((one) => [one.id, one])).values()].filter(({ id }) => !read.has(id));
    const bytes = more.reduce((sum, { inputBytes, responseBytes }) => sum + inputBytes + responseBytes, 0);
    if (bytes > READ_FACTOR * bytesMax) throw tooLarge(`${bytesMax} bytes`);
    for (const [id, content] of await kept!.read(more)) read.set(id, content);
  }

  /** The items of a lineage, then `own`. `missing`: what stands for an item that is not kept. */
  async function open(
    lineage: readonly KeptResponse[],
    own: readonly Json[],
    caller: Caller,
    missing: (item: Json) => Json,
  ): Promise<Opened> {
    const read = new Map<string, KeptContent>();
    await readMore(read, lineage);
    const items = [...lineage.flatMap(({ id }) => itemsOfKept(read.get(id) ?? lost(id))), ...own];
    if (items.length > itemsMax) throw tooLarge(`${itemsMax} items`);
    const ids = [...new Set(items.filter(isReference).map(idOf))];
    const holders = await holdersOf(ids, caller);
    const used = [...new Map([...lineage, ...holders.values()].map((one) => [one.id, one])).values()];
    for (const { service } of used) authorise(caller, service);
    await readMore(read, [...holders.values()]);
    const named = new Map(
      used
        .flatMap(({ id }) => (read.has(id) ? itemsOfKept(read.get(id)!) : []))
        .flatMap((item) => (isReference(item) ? [] : [[item['id'], item] as const])),
    );
    return { used, items: items.map((item) => (isReference(item) ? (named.get(idOf(item)) ?? missing(item)) : item)) };
  }

  return {
    async resolve(asked, bytes, caller) {
      const lineage = await lineageOf(asked.previous_response_id, caller);
      const own = itemsOf(asked.input);
      const reference = own.findIndex(isReference);
      if (lineage.length === 0 && reference === -1) return { asked, bytes };
      if (kept === null) throw keepsNone(`input[${reference}] of type item_reference`, `input[${reference}]`);
      const { used, items } = await open(lineage, own, caller, (item) => nothing(idOf(item)));
      const input = items.map(asSent);
      const text = withInput(bytes.toString('utf8'), JSON.stringify(input));
      if (Buffer.byteLength(text) > bytesMax) throw tooLarge(`${bytesMax} bytes`);
      await kept.use(used);
      const { previous_response_id: _previous, ...rest } = asked;
      return { asked: { ...rest, input }, bytes: Buffer.from(text) };
    },

    async inputOf(response, caller) {
      const earlier = response.previous === null ? [] : await kept!.lineage(response.previous, ownerOf(caller));
      const content = (await kept!.read([response])).get(response.id);
      const own = content === undefined ? [] : (JSON.parse(content.input) as readonly Json[]);
      return (await open(earlier, own, caller, (item) => item)).items;
    },
  };
}

/** Sealed texts are longer than their content, and a response repeats parts of its request. */
const READ_FACTOR = 4;

const isFound = (one: readonly [string, KeptResponse | undefined]): one is [string, KeptResponse] =>
  one[1] !== undefined;

/** The items of a request. */
export const itemsOf = (input: ResponsesBody['input']): readonly Json[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? []);

const isReference = (item: Json): boolean => typeOf(item) === 'item_reference';

function idOf({ id }: Json): string {
  if (typeof id === 'string' && id !== '') return id;
  throw new GatewayError('invalid_request', 'An item of type item_reference must have the id of the item', {
    param: 'input',
  });
}

/** The items of a kept response: those of its request, then its output. */
function itemsOfKept({ input, response }: KeptContent): readonly Json[] {
  const { output } = JSON.parse(response) as { readonly output?: readonly Json[] };
  return [...(JSON.parse(input) as readonly Json[]), ...(output ?? [])].filter(isObject);
}

/** Items that need no id. A provider that has not stored an item may refuse its id. */
const WITHOUT_ID: ReadonlySet<string> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
]);

function asSent(item: Json): Json {
  if (!WITHOUT_ID.has(typeOf(item))) return item;
  const { id: _id, ...rest } = item;
  return rest;
}

/** The body with another input, and without the name of the previous response. */
function withInput(body: string, input: string): string {
  const text = body.trim();
  const changes = { input, previous_response_id: null };
  try {
    return splice(text, [withMembers(text, { start: 0, end: text.length }, changes, uniqueMembersOf(text))]);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    throw new GatewayError('invalid_request', `The body cannot be forwarded: ${error.message}`, { cause: error });
  }
}

/** For a response whose content cannot be read: it was sealed by a gateway with another identity. */
function lost(id: string): never {
  throw noPrevious(id);
}

function nothing(id: string): never {
  throw noItem(id);
}
