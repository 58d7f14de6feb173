import type { GatewayError } from '#errors';
import type { JsonObject } from '#wire';
import { type ChatBody, type ChatMessage, type ChatTool, REASONING_IF_LISTED } from '../chat/chat-schema.ts';
import { inOneText, unread } from './chat-turns.ts';
import type { TranslatedBody } from './chat-wire.ts';
import { isStrict } from './strict-schema.ts';
import type { WireRequest } from './wire-request.ts';

/** The fields of a wire that its translation reads. */
interface ReadFields {
  /** Those that are copied, by their name in a chat request. */
  readonly copied: readonly (readonly [from: string, to: string])[];
  /** All of them. Others are named as dropped. */
  readonly all: ReadonlySet<string>;
}

/** Fields of the gateway that mean the same on every wire. */
const OF_THE_GATEWAY = ['models', 'provider', 'continue', 'max_cost', 'max_tool_rounds', 'tollgate'];

/** `copied`: fields with their names in a chat request. `read`: further fields that the translation reads. */
export function readFields(copied: ReadFields['copied'], read: readonly string[]): ReadFields {
  const all = [...copied, ...OF_THE_GATEWAY.map((name) => [name, name] as const)];
  return { copied: all, all: new Set([...all.map(([from]) => from), 'model', 'stream', 'session_id', ...read]) };
}

/** A request of another wire while it becomes a chat request: what all wires do alike. */
export class ChatDraft implements TranslatedBody {
  readonly body: ChatBody;
  readonly dropped: string[];
  untranslatable: GatewayError | null = null;
  readonly #request: WireRequest;

  constructor(requestBody: JsonObject, request: WireRequest, fields: ReadFields) {
    this.body = { model: request.model, messages: [] };
    this.dropped = unread(requestBody, fields.all);
    this.#request = request;
    for (const [from, to] of fields.copied) {
      const value = requestBody[from] ?? null;
      if (value !== null) this.body[to] = value;
    }
    if (requestBody['stream'] === true) this.body.stream = true;
  }

  /** Call it when the conversation is read: it names what was left out of it. `system`: empty for none. */
  say(system: string, messages: readonly ChatMessage[]): void {
    this.dropped.push(...this.#request.leftOut);
    // An agent or a tool takes parts.
    const draftMessages = this.#request.isBridged ? messages : messages.map(inOneText);
    this.body.messages = [...(system === '' ? [] : [{ role: 'system', content: system }]), ...draftMessages];
  }

  /** Returns false if they are left out, and `choice` with them. `choice`: undefined for none. */
  giveTools(tools: readonly ChatTool[], choice: unknown): boolean {
    if (tools.length === 0) return false;
    // Coding agents send their tools to every model. An agent has its own tools.
    if (this.#request.isBridged && (choice === undefined || choice === 'auto' || choice === 'none')) {
      this.dropped.push('tools');
      return false;
    }
    this.body.tools = [...tools];
    return true;
  }

  /**
   * Adds `reasoning`, unless it is empty. Only models that list it get it: coding agents ask every model to think, and
   * a model that cannot think would refuse the request. `writtenAs`: the fields of the request that say it, which are
   * named as dropped for the others.
   */
  think(reasoning: JsonObject, writtenAs: readonly string[]): void {
    if (Object.keys(reasoning).length === 0) return;
    this.body['reasoning'] = reasoning;
    this.body[REASONING_IF_LISTED] = writtenAs;
  }

  answerIn(schema: object): void {
    const format = { name: 'answer', schema, strict: isStrict(schema) };
    this.body.response_format = { type: 'json_schema', json_schema: format };
  }
}
