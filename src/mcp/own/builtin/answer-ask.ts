import type { ClientAnswer } from '#http';
import { GatewayError, isCorrectable } from '#errors';
import { printable } from '#security';
import { type RequestMessage, resultText } from '#json-rpc';
import { eventText, LargeStrings } from '#wire';
import type { CancelSignal } from '#billing/amounts';
import type { Config } from '#config';
import { capCost } from '#call';
import { nearestHint } from '#catalog';
import { type ContentResult, type EventBatch, partOf, type TargetAdapters } from '#bridge';
import { ownResult, type ServerInfo } from '../own-answer.ts';
import type { AnswerCall, CallForm } from '../../call/answer-call.ts';
import type { ReadPaid } from '../../request/paid-request.ts';
import { type RequestContext, ownMeta, traceOf } from '../../call/stateless.ts';
import type { McpRequest, McpResponse } from '../../request/mcp-request.ts';
import { readAsk } from './ask-tools.ts';
import { fullName, type BridgedKind, WORD } from './bridged-services.ts';
import { progressTokenOf } from '../../request/modern-to-legacy-text.ts';
import { withMeta } from '../../wire/meta.ts';
import { MODERN_METHODS } from '../../wire/revisions.ts';
import { createPartsContent, wordsOfItem } from '../../call/content-parts.ts';

export interface AskRequest {
  readonly kind: BridgedKind;
  /** The agent or model; null if the arguments name it. */
  readonly name: string | null;
  readonly arguments: unknown;
  readonly message: RequestMessage;
  readonly client: McpRequest['client'];
  readonly capabilities: McpRequest['capabilities'];
  readonly events: boolean;
  readonly info: ServerInfo;
  /** Whether the address has an agent or model with this full name. Default: all. */
  readonly selects?: (name: string) => boolean;
}

interface AnswerAskDeps {
  readonly answerCall: AnswerCall;
  readonly readPaid: ReadPaid;
  readonly targets: () => Partial<TargetAdapters>;
  readonly receipts: Config['billing']['receipts'];
  readonly charsMax: number;
}

/**
 * Answers a call of a tool that asks an agent or a model. It makes a call of that primitive, at the primitive's price.
 * `gone` aborts when nobody waits any more. Throws GatewayError `invalid_request` for wrong `_meta` and headers of the
 * gateway. Any other failure becomes the answer.
 */
export type AnswerAsk = (
  ask: AskRequest,
  context: RequestContext,
  answer: ClientAnswer,
  gone?: CancelSignal,
) => Promise<void>;

const NEAR_MAX = 1_000;

export function createAnswerAsk({ answerCall, readPaid, targets, receipts, charsMax }: AnswerAskDeps): AnswerAsk {
  return async (ask, { caller: sender, requestId, headers, gone: clientGone }, answer, gone = clientGone) => {
    const { kind, client, capabilities, events, info, selects = () => true } = ask;
    const own = ownMeta(ask.message, headers, receipts);
    const { message } = own;
    const modern = client === 'modern';
    const failed = (why: string) =>
      ownResult({ content: JSON.stringify([{ type: 'text', text: why }]), isError: 'true' }, info, modern, false);
    const read = readAsk(kind, ask.arguments, ask.name === null);
    if ('fault' in read) return answer.end(resultText(message.idText, failed(read.fault)), 200);
    const targetAdapter = targets()[kind];
    const name = ask.name ?? read.name!;
    const there = () => (targetAdapter?.has(name) ?? false) && selects(fullName(kind, name));

    const unknown = () => {
      const names = (targetAdapter?.list(NEAR_MAX) ?? [])
        .map((one) => one.name)
        .filter((one) => selects(fullName(kind, one)));
      return `There is no ${WORD[kind]} ${printable(name)} here. ${nearestHint(name, names)}`.trimEnd();
    };
    const target = fullName(kind, name);
    const { caller, payment } = await readPaid(sender, target, own);
    const parts = createPartsAnswer({ kind, message, modern, events, info, charsMax });
    const request: McpRequest = {
      message,
      client,
      caller,
      requestId,
      callId: '',
      service: target,
      target,
      rule: MODERN_METHODS['tools/call']!,
      traceparent: traceOf(headers, message),
      wantsReceipt: own.wantsReceipt,
      idempotencyKey: own.idempotencyKey,
      cap: own.cap,
      quote: own.quote,
      payment,
      elicitationAction: own.elicitationAction,
      events,
      capabilities,
      paramHeaders: null,
      session: null,
      continued: null,
      toClient: (text) => text,
    };
    const form: CallForm<ContentResult, EventBatch> = {
      async call({ traceparent, wantsReceipt, cap, quote }) {
        if (!targetAdapter || !there()) throw new GatewayError('invalid_model', unknown());
        const context = { caller, requestId, traceparent, wantsReceipt };
        const callRequest = capCost(
          await targetAdapter.toCall(name, { ...read.ask, stream: parts.isHeard }, context),
          cap,
        );
        return { ...callRequest, quote, ...(payment ? { payment } : {}) };
      },
      events: parts.events,
      response: parts.response,
      errorResult: (error) =>
        error instanceof GatewayError && isCorrectable(error.code) ? failed(error.message) : null,
    };
    await answerCall(request, form, answer, gone);
  };
}

interface PartsAnswerOptions {
  readonly kind: BridgedKind;
  readonly message: RequestMessage;
  readonly modern: boolean;
  readonly events: boolean;
  readonly info: ServerInfo;
  readonly charsMax: number;
}

interface PartsAnswer {
  /** Whether the client gets the text while it is produced. */
  readonly isHeard: boolean;
  /**
   * Takes the events of a data frame. Returns progress notifications with their text, if the client gave a progress
   * token; else null.
   */
  events(batch: EventBatch): Uint8Array | null;
  /** The response at the end; null for a call that was aborted. */
  response(result: ContentResult | null): McpResponse | null;
}

const STATES = {
  stop: 'completed',
  length: 'completed',
  input: 'input-required',
  cut: 'canceled',
  failed: 'failed',
  later: 'working',
} as const satisfies Record<ContentResult['finish'], string>;

function createPartsAnswer({ kind, message, modern, events, info, charsMax }: PartsAnswerOptions): PartsAnswer {
  const token = events ? progressTokenOf(message) : null;
  const content = createPartsContent(charsMax);
  let count = 0;

  const notify = (text: string | null) => {
    const member = text === null ? '' : `,"message":${JSON.stringify(text)}`;
    const params = `{"progressToken":${token},"progress":${++count}${member}}`;
    return eventText(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`);
  };

  return {
    isHeard: token !== null,
    events(batch) {
      let notes = '';
      let text = '';
      const tellText = () => {
        if (text !== '' && token !== null) notes += notify(text);
        text = '';
      };
      for (const event of batch.events) {
        if (event.type === 'progress') {
          tellText();
          if (token !== null) notes += notify(event.text);
          continue;
        }
        const part = partOf(event);
        if (part === null) continue;
        content.add(part);
        if (part.kind !== 'text') continue;
        text += part.text;
        // An agent's events are messages of their own. The deltas of a model that came together are one.
        if (kind === 'a2a') tellText();
      }
      tellText();
      return notes === '' ? null : Buffer.from(notes);
    },
    response(result) {
      if (result === null) return null;
      const { finish, error, taskId, contextId, files = [] } = result;
      const large = new LargeStrings();
      for (const file of files) content.addLarge(file, large);
      const failed = finish === 'failed';
      const fault = failed ? (error ?? 'It failed and gave no reason') : finish === 'cut' ? error : null;
      const items = [...content.items(), ...(fault === null ? [] : [{ type: 'text', text: fault } as const])];
      const structured = {
        answer: items.map(wordsOfItem).join('\n'),
        task_id: taskId,
        context_id: contextId,
        state: STATES[finish],
        ...(finish === 'input' || finish === 'later' ? { cost_pending: true } : {}),
      };
      const members = {
        content: JSON.stringify(items),
        ...(kind === 'a2a' ? { structuredContent: JSON.stringify(structured) } : {}),
        ...(failed ? { isError: 'true' } : {}),
      };
      const text = resultText(message.idText, ownResult(members, info, modern, false));
      const whole = finish !== 'length' && finish !== 'cut' && !content.cut;
      return {
        text: whole ? text : withMeta(text, 'result', { 'tollgate/finish': '"length"' }),
        status: 200,
        ...(files.length === 0 ? {} : { large }),
      };
    },
  };
}
