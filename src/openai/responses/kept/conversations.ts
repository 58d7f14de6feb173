import { GatewayError } from '#errors';
import {
  isObject,
  OWN_TURN_BYTES,
  ownTurn,
  RawJsonError,
  splice,
  uniqueMembersOf,
  withMembers,
  type JsonObject,
} from '#wire';
import { authorise } from '#call';
import type { Caller } from '#accounts';
import { type MoreMemory, PARSED_JSON } from '#http';
import { isStorable, ownerOf } from '#tasks';
import type { KeptContent, KeptResponse, KeptResponses, ReadContent } from '#kept-responses';
import type { ResponsesBody } from '../schema.ts';
import { keepsNone, noItem, noPrevious, underWay } from './errors.ts';
import { isResponseId, responseOfItem, typeOf } from './kept-ids.ts';

interface ConversationsOptions {
  /** null if the gateway keeps no responses. */
  readonly keptResponses: KeptResponses | null;
  /** Most items and bytes of a request. */
  readonly itemsMax: number;
  readonly bytesMax: number;
}

interface ResolvedRequest {
  readonly requestBody: ResponsesBody;
  /** The JSON text of `requestBody`. */
  readonly bytes: Buffer;
}

/** Conversations that requests continue by naming kept responses and their items. */
export interface Conversations {
  /**
   * Replaces `previous_response_id` and the `item_reference` items of a request by the items themselves, which `memory`
   * counts. Rejects with GatewayError, also if there is no memory for them.
   */
  resolve(requestBody: ResponsesBody, bytes: Buffer, caller: Caller, memory: Memory): Promise<ResolvedRequest>;
  /** All items that the model got with the request of a kept response, each with an id. Counts and rejects likewise. */
  inputOf(response: KeptResponse, caller: Caller, memory: Memory): Promise<readonly JsonObject[]>;
  /** A kept response as it is now; null if it cannot be read. Counts and rejects likewise. */
  show(response: KeptResponse, memory: Memory): Promise<JsonObject | null>;
}

type Memory = Pick<MoreMemory, 'grow' | 'becomes'>;

/** The items of responses that are read, by the ids of the responses. */
type ReadItems = Map<string, readonly JsonObject[]>;

/** Kept responses with their content, and items in which nothing refers to others any more. */
interface ResolvedItems {
  readonly used: readonly KeptResponse[];
  readonly items: readonly JsonObject[];
}

export function createConversations({ keptResponses, itemsMax, bytesMax }: ConversationsOptions): Conversations {
  const tooLarge = (what: string) =>
    new GatewayError(
      'invalid_request',
      `The conversation that this request continues has more than ${what} with its input, which is the most that a request may have. Begin a new one, with a summary of this one`,
      { param: 'input' },
    );

  async function lineageOf(previous: string | null | undefined, caller: Caller): Promise<readonly KeptResponse[]> {
    if (previous === undefined || previous === null) return [];
    if (keptResponses === null) throw keepsNone('previous_response_id', 'previous_response_id');
    if (!isResponseId(previous)) throw noPrevious(previous);
    const lineage = await keptResponses.lineage(previous, ownerOf(caller));
    const [first] = lineage;
    if (first === undefined) throw noPrevious(previous);
    if (first.previous !== null) throw noPrevious(first.previous);
    return lineage.map(hasEnded);
  }

  /** The responses that have the items with these ids, by the id of the item. */
  async function holdersOf(ids: readonly string[], caller: Caller): Promise<ReadonlyMap<string, KeptResponse>> {
    if (ids.length === 0) return new Map();
    const owner = ownerOf(caller);
    const responseOf = new Map(ids.map((id) => [id, responseOfItem(id)]));
    const [responsesById, createdResponses] = await Promise.all([
      keptResponses!.ofItems(
        ids.filter((id) => isStorable(id)),
        owner,
      ),
      keptResponses!.findAll(
        [...new Set(responseOf.values())].filter((id) => id !== null),
        owner,
      ),
    ]);
    const createdById = new Map(createdResponses.map((one) => [one.id, one]));
    const holderOf = (id: string) => responsesById.get(id) ?? createdById.get(responseOf.get(id) ?? '');
    return new Map(ids.flatMap((id) => [[id, holderOf(id)] as const]).filter(isFound));
  }

  /**
   * Reads responses, by their ids. Their memory is counted before they are read. Throws GatewayError if there is no
   * memory, or if they are too large for a request.
   */
  async function contentOf(
    responses: readonly KeptResponse[],
    memory: Memory,
  ): Promise<ReadonlyMap<string, ReadContent>> {
    const bytes = responses.reduce((sum, { inputBytes, responseBytes }) => sum + inputBytes + responseBytes, 0);
    if (bytes > READ_FACTOR * bytesMax) throw tooLarge(`${bytesMax} bytes`);
    memory.grow(PARSED_JSON * bytes);
    return keptResponses!.read(responses);
  }

  /** Adds the items of responses that are not read yet, by the ids of the responses. Throws like contentOf. */
  async function readMore(read: ReadItems, responses: readonly KeptResponse[], memory: Memory): Promise<void> {
    const more = [...new Map(responses.map((one) => [one.id, one])).values()].filter(({ id }) => !read.has(id));
    for (const [id, content] of await contentOf(more, memory)) {
      if (content.input.length + content.response.length > OWN_TURN_BYTES) await ownTurn();
      read.set(id, itemsOfKept(content));
    }
  }

  /** The items of a lineage, then `own`. `missing`: what stands for an item that is not kept. */
  async function open(
    lineage: readonly KeptResponse[],
    own: readonly JsonObject[],
    caller: Caller,
    memory: Memory,
    missing: (item: JsonObject) => JsonObject,
  ): Promise<ResolvedItems> {
    const read: ReadItems = new Map();
    await readMore(read, lineage, memory);
    const items = [...lineage.flatMap(({ id }) => read.get(id) ?? lost(id)), ...own];
    if (items.length > itemsMax) throw tooLarge(`${itemsMax} items`);
    const ids = [...new Set(items.filter(isReference).map(idOf))];
    const holders = await holdersOf(ids, caller);
    const used = [...new Map([...lineage, ...holders.values()].map((one) => [one.id, one])).values()];
    for (const { service } of used) authorise(caller, null, service);
    await readMore(read, [...holders.values()], memory);
    const itemsById = new Map(
      used
        .flatMap(({ id }) => read.get(id) ?? [])
        .flatMap((item) => (isReference(item) ? [] : [[item['id'], item] as const])),
    );
    return {
      used,
      items: items.map((item) => (isReference(item) ? (itemsById.get(idOf(item)) ?? missing(item)) : item)),
    };
  }

  return {
    async resolve(requestBody, bytes, caller, memory) {
      const lineage = await lineageOf(requestBody.previous_response_id, caller);
      const own = itemsOf(requestBody.input);
      const reference = own.findIndex(isReference);
      if (lineage.length === 0 && reference === -1) return { requestBody, bytes };
      if (keptResponses === null) throw keepsNone(`input[${reference}] of type item_reference`, `input[${reference}]`);
      const { used, items } = await open(lineage, own, caller, memory, (item) => nothing(idOf(item)));
      const together = withItems(bytes, items, bytesMax);
      if (together === null) throw tooLarge(`${bytesMax} bytes`);
      const { input, text } = together;
      // What was read is replaced by a request of this size. Its items are counted as those of a body.
      memory.becomes(PARSED_JSON * Buffer.byteLength(text));
      await keptResponses.use(used);
      const { previous_response_id: _previous, ...rest } = requestBody;
      return { requestBody: { ...rest, input }, bytes: Buffer.from(text) };
    },

    async inputOf(response, caller, memory) {
      const earlier =
        response.previous === null ? [] : await keptResponses!.lineage(response.previous, ownerOf(caller));
      const content = (await contentOf([response], memory)).get(response.id);
      const own = content === undefined ? [] : (JSON.parse(content.input) as readonly JsonObject[]);
      return (await open(earlier, own, caller, memory, (item) => item)).items;
    },

    async show(response, memory) {
      const content = (await contentOf([response], memory)).get(response.id);
      return content === undefined ? null : shownOf(content);
    },
  };
}

/** The items of a request that is put together, and its JSON text; null if it is longer than `bytesMax`. */
function withItems(
  body: Buffer,
  items: readonly JsonObject[],
  bytesMax: number,
): { readonly input: JsonObject[]; readonly text: string } | null {
  const sent = new Map([...new Set(items)].map((item) => [item, asSent(item)]));
  const input = items.map((item) => sent.get(item)!);
  const whole = textOf(input, bytesMax);
  if (whole === null) return null;
  const text = changedBody(body.toString('utf8'), { input: whole, previous_response_id: null });
  return Buffer.byteLength(text) > bytesMax ? null : { input, text };
}

/** The JSON text of items; null if it is longer than `bytesMax`. Many references can name one item. */
function textOf(items: readonly JsonObject[], bytesMax: number): string | null {
  const texts = new Map<JsonObject, string>();
  let length = 2;
  const parts: string[] = [];
  for (const item of items) {
    let text = texts.get(item);
    if (text === undefined) texts.set(item, (text = JSON.stringify(item)));
    length += text.length + 1;
    if (length > bytesMax + 1) return null;
    parts.push(text);
  }
  return `[${parts.join(',')}]`;
}

/** Sealed texts are longer than their content, and a response repeats parts of its request. */
const READ_FACTOR = 4;

const isFound = (one: readonly [string, KeptResponse | undefined]): one is [string, KeptResponse] =>
  one[1] !== undefined;

/** Throws GatewayError for a response that is made in the background and has not ended. */
function hasEnded(response: KeptResponse): KeptResponse {
  const { id, run } = response;
  if (run === null || run === 'lost') return response;
  throw underWay(id);
}

export const itemsOf = (input: ResponsesBody['input']): readonly JsonObject[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? []);

const isReference = (item: JsonObject): boolean => typeOf(item) === 'item_reference';

function idOf({ id }: JsonObject): string {
  if (typeof id === 'string' && id !== '') return id;
  throw new GatewayError('invalid_request', 'An item of type item_reference must have the id of the item', {
    param: 'input',
  });
}

function itemsOfKept({ input, response }: KeptContent): readonly JsonObject[] {
  const { output } = JSON.parse(response) as { readonly output?: readonly JsonObject[] };
  return [...(JSON.parse(input) as readonly JsonObject[]), ...(output ?? [])].filter(isObject);
}

/** A kept response. One that is under way is stored as it began. */
function shownOf({ response, run }: ReadContent): JsonObject {
  const responseObject = JSON.parse(response) as JsonObject;
  if (run === null || run === 'lost') return responseObject;
  return { ...responseObject, status: run === 'cancelling' ? 'cancelled' : run };
}

/** Items that need no id. A provider that has not stored an item may refuse its id. */
const WITHOUT_ID: ReadonlySet<string> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
]);

export function asSent(item: JsonObject): JsonObject {
  if (!WITHOUT_ID.has(typeOf(item))) return item;
  const { id: _id, ...rest } = item;
  return rest;
}

/** The body with other values of some members, as JSON texts. null removes a member. Throws GatewayError. */
export function changedBody(body: string, changes: Readonly<Record<string, string | null>>): string {
  const text = body.trim();
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
