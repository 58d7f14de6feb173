import type { ReplySink } from '#wire';
import type { Caller } from '#gateway';
import { isStorable, type KeptResponses, ownerOf } from '#tasks';
import type { StartedChat } from '../../chat/chat-reply.ts';
import type { Json, ResponsesBody } from '../responses-schema.ts';
import { itemsOf } from './conversations.ts';
import { responseIdOf, responseOfItem, withIds } from './kept-ids.ts';
import { KeepingSink } from './keeping-sink.ts';

interface KeptRequest {
  readonly caller: Caller;
  /** As the client sent it. */
  readonly asked: ResponsesBody;
}

/** Keeps the response of a call, with the items of its request, when its reply is written. */
export function keepsResponse(kept: KeptResponses, { caller, asked }: KeptRequest) {
  return ({ id: callId, call, about }: StartedChat, client: ReplySink, onError: (error: unknown) => void) => {
    const id = responseIdOf(callId);
    const keep = async (response: Json): Promise<boolean> => {
      if (response['id'] !== id) return false;
      const input = withIds(itemsOf(asked.input), id);
      const output = Array.isArray(response['output']) ? (response['output'] as readonly Json[]) : [];
      try {
        return await kept.put({
          ...ownerOf(caller),
          id,
          service: call?.service ?? about.model,
          previous: asked.previous_response_id ?? null,
          input: JSON.stringify(input),
          response: JSON.stringify(response),
          items: namesOf([...input, ...output], id),
        });
      } catch (error) {
        onError(error);
        return false;
      }
    };
    return new KeepingSink(client, keep);
  };
}

/** The ids of items that do not contain the id of their response. A reference names an item of another response. */
export const namesOf = (items: readonly Json[], responseId: string): readonly string[] =>
  [...new Set(items.filter(({ type }) => type !== 'item_reference').map(({ id }) => id))].filter(
    (id) => typeof id === 'string' && responseOfItem(id) !== responseId && isStorable(id),
  ) as readonly string[];
