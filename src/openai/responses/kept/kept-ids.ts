import type { JsonObject } from '#wire';

const PREFIX = 'resp_';
/** The id that an item gets from this gateway: `i` is before the place of an item of the request. */
const ITEM_ID = /^[a-z]{1,8}_([A-Za-z0-9]{8,64})_(i?)(\d{1,5})$/;
const RESPONSE_ID = /^resp_[A-Za-z0-9]{8,64}$/;

export const responseIdOf = (callId: string): string => PREFIX + callId.replace(/^gen-/, '');

export const callIdOf = (responseId: string): string => responseId.replace(PREFIX, 'gen-');

/** Whether this gateway may have made an id of a response. */
export const isResponseId = (id: unknown): id is string => typeof id === 'string' && RESPONSE_ID.test(id);

/** The response of an item whose id this gateway made; null for another id. */
export function responseOfItem(id: string): string | null {
  const tail = ITEM_ID.exec(id)?.[1];
  return tail === undefined ? null : PREFIX + tail;
}

const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
};

/** The items of a request, each with an id. References keep the id that they name. */
export const withIds = (items: readonly JsonObject[], responseId: string): readonly JsonObject[] =>
  items.map((item, place) => {
    if (typeof item['id'] === 'string' && item['id'] !== '') return item;
    const type = typeOf(item);
    const prefix = PREFIXES[type] ?? 'item';
    return { ...item, type, id: `${prefix}_${responseId.slice(PREFIX.length)}_i${place}` };
  });

/** The type of an item. A message needs none, and neither does a reference. */
export const typeOf = ({ type, role }: JsonObject): string =>
  typeof type === 'string' ? type : role === undefined ? 'item_reference' : 'message';
