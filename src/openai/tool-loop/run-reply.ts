import { toHttpError } from '#http';
import type { GatewayError } from '#errors';
import {
  type Frame,
  type SettledFrame,
  formatUsd,
  toUsdNumber,
  type MicroUsd,
  type Settlement,
} from '#billing/amounts';
import { type Call, spentOn } from '#call';
import { type EventBatch, eventBatch } from '#bridge';
import { type ChatResult, partsOfCharge } from '../chat/reply/chat-end.ts';
import type { FinishReason } from '../chat/reply/finish-reason.ts';
import type { ReplyAbout } from '../chat/reply/chat-reply.ts';
import type { ChatMessage } from '../chat/chat-schema.ts';
import { askedOf, type ToolCall } from './model-turn.ts';
import type { ServerTool } from './server-tools.ts';

export interface RunEnd {
  readonly finishReason: FinishReason | null;
  readonly calls: readonly ToolCall[];
  /** Why the run ended early; null if it did not. */
  readonly note: GatewayError | null;
  readonly message: Record<string, unknown>;
}

interface RunReply {
  readonly about: ReplyAbout;
  readonly text: string;
  readonly counter: RunCounter;
  readonly provider: string;
  readonly providerName: string;
  /** The tool calls of the model and their results, for a client that continues the conversation. */
  readonly added: readonly ChatMessage[];
}

const chunkOf = (
  { id, startedAt, model }: ReplyAbout,
  provider: string,
  choice: Record<string, unknown>,
  more: Record<string, unknown> = {},
): Record<string, unknown> => ({
  id,
  object: 'chat.completion.chunk',
  created: Math.floor(startedAt / 1000),
  model,
  provider,
  choices: [{ index: 0, ...choice }],
  ...more,
});

/** The progress of a tool, for a chunk without text. */
export interface ToolActivity extends ServerTool {
  /** The model's id of its call. */
  readonly id: string;
  readonly state: 'running' | 'done' | 'failed';
  /** Id of the billed call, once there is one. */
  readonly generation: string | null;
}

export function activityFrame(
  about: ReplyAbout,
  provider: string,
  activities: readonly ToolActivity[],
): Frame<ChatResult, EventBatch> {
  const chunk = chunkOf(about, provider, { delta: {}, finish_reason: null }, { tollgate: { tool_calls: activities } });
  return { type: 'data', data: eventBatch([{ type: 'raw', chunk }])! };
}

/** The last frame of a run's reply. It has the total usage and cost of all calls, and the cost of each call. */
export function runSettled(
  { about, text, counter, provider, providerName, added }: RunReply,
  { finishReason, calls, note, message }: RunEnd,
): SettledFrame<ChatResult> {
  const requestedCalls = calls.map(askedOf);
  const more: Record<string, unknown> = {};
  // Without these messages, the client's next request would lack the results of the tools.
  if (requestedCalls.length > 0 && added.length > 0) more['tollgate'] = { messages: added };
  if (note !== null) more['tollgate'] = { note: toHttpError(note).body.error };
  if (finishReason === 'error' && note !== null) more['error'] = toHttpError(note).body.error;
  const body = about.stream
    ? chunkOf(about, providerName, { delta: {}, finish_reason: finishReason }, more)
    : {
        ...chunkOf(
          about,
          providerName,
          {
            message: {
              ...message,
              role: 'assistant',
              content: text === '' && requestedCalls.length > 0 ? null : text,
              ...(requestedCalls.length > 0 ? { tool_calls: requestedCalls } : {}),
            },
            finish_reason: finishReason,
          },
          more,
        ),
        object: 'chat.completion',
        system_fingerprint: null,
      };
  const deltas = { tool_calls: requestedCalls.map((call, index) => ({ index, ...call })) };
  const chunk = chunkOf(about, providerName, { delta: deltas, finish_reason: null });
  const result: ChatResult = {
    before: about.stream && requestedCalls.length > 0 ? eventBatch([{ type: 'raw', chunk }]) : null,
    body,
    usage: counter.usage,
    promptCost: counter.promptCost,
    completionCost: counter.completionCost,
    costDetails: { children: counter.children },
  };
  return {
    type: 'settled',
    settlement: counter.settlement,
    usage: null,
    provider,
    providerName,
    receipt: null,
    result,
  };
}

export interface RunCounter {
  settled(call: Call, frame: SettledFrame): void;
  /** Adds the usage of a finished turn of the model, for which this was charged. */
  used(result: Pick<ChatResult, 'usage' | 'promptCost' | 'completionCost'>, charged: MicroUsd): void;
  /** The charge for the prompts of all turns, micro-USD. */
  readonly promptCost: MicroUsd;
  /** The charge for completion tokens, micro-USD. */
  readonly completionCost: MicroUsd;
  readonly charged: bigint;
  readonly settlement: Settlement;
  readonly usage: Readonly<Record<string, unknown>>;
  /** The settled calls, in the order in which they settled. */
  readonly children: readonly ChildCost[];
}

/** One call of a run as the reply lists it. */
interface ChildCost {
  readonly id: string;
  readonly primitive: string;
  readonly service: string;
  readonly tool?: string;
  /** USD. */
  readonly cost: number;
  readonly charged_usd: string;
  readonly receipt?: string;
}

export function createRunCounter(): RunCounter {
  return new Counter();
}

class Counter implements RunCounter {
  promptCost = 0n;
  completionCost = 0n;
  readonly settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };
  readonly children: ChildCost[] = [];
  #prompt = 0;
  #completion = 0;
  #estimated = false;

  get charged(): bigint {
    return this.settlement.charged;
  }

  get usage(): Readonly<Record<string, unknown>> {
    return {
      prompt_tokens: this.#prompt,
      completion_tokens: this.#completion,
      total_tokens: this.#prompt + this.#completion,
      ...(this.#estimated ? { estimated: true } : {}),
    };
  }

  settled(call: Call, frame: SettledFrame): void {
    const { settlement, receipt } = frame;
    const spent = spentOn(frame);
    this.settlement.charged += spent;
    this.settlement.fee += settlement.fee;
    this.settlement.drawn += settlement.drawn;
    this.settlement.shortfall += settlement.shortfall;
    this.children.push({
      id: call.id,
      primitive: call.primitive,
      service: call.service,
      ...(call.operation === null ? {} : { tool: call.operation }),
      cost: toUsdNumber(spent),
      charged_usd: formatUsd(spent),
      ...(receipt === null ? {} : { receipt }),
    });
  }

  used(result: Parameters<RunCounter['used']>[0], charged: MicroUsd): void {
    const { prompt_tokens: promptTokens, completion_tokens: completionTokens, estimated } = result.usage;
    const { prompt, completion } = partsOfCharge(charged, result);
    this.promptCost += prompt;
    this.completionCost += completion;
    if (typeof promptTokens === 'number') this.#prompt += promptTokens;
    if (typeof completionTokens === 'number') this.#completion += completionTokens;
    this.#estimated ||= estimated === true;
  }
}
