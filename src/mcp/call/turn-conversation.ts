import { elementsOf, errorText, membersOf, RawJsonError, splice, UpstreamFailure } from '#wire';
import { type Call, type Conversation, type Offer, onceOnly, type ReplyEnd, type Send } from '#gateway';
import { heldToMeasure, TASK, tooLargeEnd } from '../turn/ending.ts';
import { paramHeaderFault } from '../wire/param-headers.ts';
import { ERROR, modernStatusOf } from '../wire/revisions.ts';
import type { Servers } from '../servers/servers.ts';
import { providerFailure } from '../turn/provider-failure.ts';
import { withoutTaskTools } from '../tasks/callable-tools.ts';
import { declaresTasks } from '../tasks/extension.ts';
import { keepTask, type KeepTaskDeps } from '../tasks/keep-task.ts';
import type { Leg, McpTail, ServerFacts, Turn } from '../turn/turn.ts';

export interface TurnConversationDeps {
  readonly keepTask: KeepTaskDeps;
  readonly servers: Servers;
  readonly legs: Readonly<Record<'modern' | 'legacy' | 'bare', Readonly<Record<ServerFacts['era'], Leg>>>>;
  /** The input schema of a tool; null if it is unknown. */
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  /** Puts prices and pins into the result of a `tools/list`. */
  readonly decorate: (result: string, offer: Offer, turn: Turn) => string;
}

/**
 * The native side of a turn's call. It asks the server which era it speaks, and takes the leg for that. Its end has a
 * McpTail.
 */
export class TurnConversation implements Conversation {
  readonly endsWithCall: boolean;
  readonly #deps: TurnConversationDeps;
  readonly #turn: Turn;
  #call: Call | null = null;

  constructor(deps: TurnConversationDeps, turn: Turn) {
    const { client, message, capabilities } = turn;
    this.#deps = deps;
    this.#turn = turn;
    this.endsWithCall = !(client === 'modern' && message.method === 'tools/call' && declaresTasks(capabilities));
  }

  begin(prepared: Call): void {
    this.#call = prepared;
  }

  async *converse(
    offer: Offer,
    send: Send,
    signal: AbortSignal,
    detached: Send,
  ): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
    const { servers, legs, schemaOf, decorate, keepTask: keeping } = this.#deps;
    const turn = this.#turn;
    const { message, client } = turn;
    const call = this.#call!;
    const takesTasks = !this.endsWithCall;
    if (client === 'modern' && turn.paramHeaders !== null && message.method === 'tools/call') {
      const fault = paramHeaderFault(
        schemaOf(offer, String(message.params?.['name'])),
        message.params?.['arguments'],
        turn.paramHeaders,
      );
      if (fault) return refusal(turn, ERROR.headerMismatch, `Header mismatch: ${fault}`);
    }
    if (takesTasks) await keeping.tasks.admit(turn.caller.account);
    const facts = await servers.facts(offer, send, signal, turn.session?.era);
    let end: ReplyEnd;
    const beganAt = performance.now();
    const askedAt = turn.continued?.askedAt ?? call.startedAt;
    try {
      end = yield* legs[client][facts.era](turn, { offer, facts, send, detached, signal, askedAt });
      if (message.method === 'tools/call' && end.finishReason === TASK) {
        if (!takesTasks || facts.era !== 'modern')
          throw providerFailure('it answered with a task, but the request did not declare support for tasks', null);
        return await keepTask(keeping, turn, offer, { call, askedAt }, end);
      }
      // The difference can be negative, because another gateway with a faster clock may have asked first.
      end = heldToMeasure(end, turn, offer, Math.max(0, call.startedAt - askedAt) + performance.now() - beganAt);
    } catch (error) {
      if (message.method === 'tools/call' && error instanceof UpstreamFailure && error.tooLarge)
        return tooLargeEnd(turn, offer, error, performance.now() - beganAt);
      throw message.method === 'tools/call' ? onceOnly(readable(error)) : readable(error);
    }
    if (message.method !== 'tools/list') return end;
    const tasks = client === 'modern' && facts.era === 'modern';
    return decorated(end, (result) => decorate(tasks ? result : withoutTaskTools(result), offer, turn));
  }
}

/** An answer that a leg could not parse is a failure of its server. */
function readable(error: unknown): unknown {
  if (!(error instanceof RawJsonError)) return error;
  return new UpstreamFailure(`the provider's answer is not MCP: ${error.message}`, {
    retryable: false,
    blame: 'provider',
    cause: error,
  });
}

/** An error that the gateway itself returns in the middle of a call. */
function refusal({ message }: Turn, code: number, text: string): ReplyEnd {
  const tail: McpTail = { text: errorText(message.idText, { code, message: text }), status: modernStatusOf(code) };
  return { usage: null, outcome: 'free', estimated: false, finishReason: `error ${code}`, flags: [], tail };
}

function decorated(end: ReplyEnd, change: (result: string) => string): ReplyEnd {
  const tail = end.tail as McpTail | null;
  const result = tail === null ? undefined : membersOf(tail.text).get('result');
  if (!tail || !result) return end;
  const given = tail.text.slice(result.start, result.end);
  checkList(given);
  return { ...end, tail: { ...tail, text: splice(tail.text, [{ ...result, text: change(given) }]) } };
}

/** Refuses a list that cannot be read, because a server could name other prices in it. Throws UpstreamFailure. */
function checkList(result: string): void {
  try {
    const tools = membersOf(result).get('tools');
    if (!tools || result[tools.start] !== '[' || elementsOf(result, tools.start, TOOLS_MAX + 1).length <= TOOLS_MAX)
      return;
  } catch (error) {
    throw readable(error);
  }
  throw new UpstreamFailure(`it lists more than ${TOOLS_MAX} tools at once`, { retryable: false, blame: 'provider' });
}

const TOOLS_MAX = 10_000;
