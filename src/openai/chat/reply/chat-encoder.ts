import { type Dialect, inDialect, toGatewayError, toHttpError } from '#http';
import { formatUsd, toUsdNumber } from '#billing/amounts';
import { type CallEvent, type FilePart, jsonInside } from '#bridge';
import { spentOn } from '#call';
import { oneLine } from '#security';
import { partsOfCharge, resultOf } from './chat-end.ts';
import { MODEL_FAILED } from './chat-content.ts';
import { imageText } from './chat-decoder.ts';
import { EVENT_STREAM, type ReplyAbout, type ReplyEncoder, type SettledChat, type StartedChat } from './chat-reply.ts';
import { completeStrictly } from './whole-reply.ts';

/* The encoder of the chat wire. */

interface ChatEncoderOptions {
  readonly dialect: Dialect;
  /** Whether the client asked for the usage of a stream. Without effect in the own dialect, which always has it. */
  readonly asksUsage: boolean;
}

/** Writes replies of the chat wire. Bytes of a model pass, and events of tools and agents become chunks. */
export const createChatEncoder =
  (options: ChatEncoderOptions) =>
  ({ about }: StartedChat): ReplyEncoder =>
    new ChatEncoder(about, options);

class ChatEncoder implements ReplyEncoder {
  readonly #about: ReplyAbout;
  readonly #options: ChatEncoderOptions;
  /** A chunk up to its delta, by the name of the provider in it. */
  #head: { readonly provider: string; readonly text: string } | null = null;

  constructor(about: ReplyAbout, options: ChatEncoderOptions) {
    this.#about = about;
    this.#options = options;
  }

  get streamType(): string {
    return EVENT_STREAM;
  }

  headers<H>(chat: H): H {
    return chat;
  }

  begin(): void {}

  pass(bytes: Uint8Array): Uint8Array {
    return bytes;
  }

  events(events: readonly CallEvent[], provider: string): string {
    let text = '';
    for (const event of events) text += this.#eventText(event, provider);
    return text;
  }

  keepAlive(): Uint8Array {
    return COMMENT;
  }

  end(settled: SettledChat): Uint8Array {
    const { before, native, cut } = resultOf(settled);
    const { dialect, asksUsage } = this.#options;
    const last = native
      ? Buffer.from(native(costOf(settled, true), cut ?? null))
      : dialect === 'own'
        ? lastTogether(settled)
        : lastApart(settled, this.#about, asksUsage);
    if (before === null) return last;
    const first = before instanceof Uint8Array ? before : Buffer.from(this.events(before.events, settled.providerName));
    return Buffer.concat([first, last]);
  }

  fail(error: unknown): Uint8Array {
    return errorEvent(this.#about, error, this.#options.dialect);
  }

  whole(settled: SettledChat): ReturnType<ReplyEncoder['whole']> {
    const { written, native, large, cut = null } = resultOf(settled);
    if (native) return { text: native(costOf(settled, false), cut) };
    if (written) return { before: written, text: restWithUsage(settled, false) };
    return { text: JSON.stringify(wholeBody(settled, this.#options.dialect)), large };
  }

  #eventText(event: CallEvent, provider: string): string {
    switch (event.type) {
      case 'raw':
        return eventOf(event.chunk);
      case 'progress':
        return commentOf(event.text);
      case 'text-delta':
        return this.#texts(event.json, provider, '{"content":"', '"}');
      // A chat client gets the provider's own chunks. These come of them for other wires alone.
      case 'reasoning-members':
      case 'citations':
        return '';
      case 'reasoning-delta':
        return this.#texts(event.json, provider, '{"reasoning_content":"', '"}');
      case 'tool-input-start': {
        const { index, id, name } = event;
        const call = { index, id, type: 'function', function: { name, arguments: '' } };
        return this.#chunk(provider, JSON.stringify({ tool_calls: [call] }));
      }
      case 'tool-input-delta':
        return this.#texts(
          event.json,
          provider,
          `{"tool_calls":[{"index":${event.index},"function":{"arguments":"`,
          '"}}]}',
        );
      case 'file': {
        const image = imageOf(event.file);
        return this.#chunk(
          provider,
          image === null ? `{"content":"${jsonInside(imageText(event.file))}"}` : JSON.stringify({ images: [image] }),
        );
      }
      case 'data':
        return this.#chunk(provider, `{"content":"${jsonInside(JSON.stringify(event.data) ?? 'null')}"}`);
    }
  }

  /** A chunk for each text. `before` and `behind`: the delta around it. */
  #texts(json: readonly string[], provider: string, before: string, behind: string): string {
    let text = '';
    for (const inside of json) text += this.#chunk(provider, before + inside + behind);
    return text;
  }

  #chunk(provider: string, delta: string): string {
    if (this.#head?.provider !== provider) {
      const { id } = this.#about;
      const members = { id, object: CHUNK, created: createdAt(this.#about), model: modelOf(this.#about), provider };
      this.#head = { provider, text: `data: ${JSON.stringify(members).slice(0, -1)},"choices":[{"index":0,"delta":` };
    }
    return `${this.#head.text}${delta},"finish_reason":null}]}\n\n`;
  }
}

export const imageOf = ({ mediaType, bytes }: FilePart) =>
  bytes === null ? null : { type: 'image_url', image_url: { url: `data:${mediaType};base64,${bytes}` } };

const COMMENT = Buffer.from(': keep-alive\n\n');
const COMMENT_MAX = 200;

/** Progress, as a comment that clients skip. */
const commentOf = (text: string | null): string => `: ${oneLine((text ?? 'working').slice(0, COMMENT_MAX))}\n\n`;

/**
 * A reply in one piece, with its usage and its cost. An `error` would hide the content, so the reason of a cut goes
 * into a note.
 */
export function wholeBody(settled: SettledChat, dialect: Dialect = 'own'): Record<string, unknown> {
  const { body, cut } = resultOf(settled);
  if (cut) body['tollgate'] = { ...(body['tollgate'] as object | undefined), note: toHttpError(cut).body.error };
  if (dialect === 'openai') completeStrictly(body);
  body['usage'] = usageWithCost(settled, false);
  return body;
}

/** The JSON text after `written` of a large reply: `usage` and the closing brace. */
const restWithUsage = (settled: SettledChat, stream: boolean): string =>
  `,"usage":${JSON.stringify(usageWithCost(settled, stream))}}`;

export const usageWithCost = (settled: SettledChat, stream: boolean): Record<string, unknown> => ({
  ...resultOf(settled).usage,
  ...costOf(settled, stream),
});

/** The cost members of `usage`; empty while the cost is not known. */
export function costOf(settled: SettledChat, stream: boolean): Record<string, unknown> {
  const result = resultOf(settled);
  if (settled.pending) return {};
  const { charged, fee } = settled.settlement;
  const { prompt, completion, other } = partsOfCharge(charged, result);
  const details: Record<string, unknown> = {
    charged_usd: formatUsd(charged),
    fee_usd: formatUsd(fee),
    // Clients of this API parse both members as numbers, and fail if one is missing.
    upstream_inference_prompt_cost: toUsdNumber(prompt),
    upstream_inference_completions_cost: toUsdNumber(completion),
    ...(other === 0n ? {} : { other_usd: formatUsd(other) }),
    ...result.costDetails,
  };
  // The headers of a stream are already sent, so its receipt is in the last chunk.
  if (stream && settled.receipt !== null) details['receipt'] = settled.receipt;
  return { cost: toUsdNumber(spentOn(settled)), cost_details: details };
}

/** The end of a stream: the chunk with the finish reason has the usage. */
function lastTogether(settled: SettledChat): Buffer {
  const { body, written, cut } = resultOf(settled);
  if (written) return Buffer.concat([DATA, written, Buffer.from(`${restWithUsage(settled, true)}\n\n${DONE}`)]);
  const error = cut ? toHttpError(cut).body.error : body['error'];
  const usage = usageWithCost(settled, true);
  const event = { ...body, usage };
  return Buffer.from(eventOf(error ? errorFirst(error, event) : event) + (cut ? '' : DONE));
}

/** The end of a stream in OpenAI's dialect: the usage is in a chunk of its own, and only if the client asked for it. */
function lastApart(settled: SettledChat, about: ReplyAbout, asksUsage: boolean): Buffer {
  const { body, written, cut } = resultOf(settled);
  const { created = createdAt(about), model = modelOf(about), provider = settled.providerName } = body;
  const base = { id: about.id, object: CHUNK, created, model, provider, choices: [] };
  const failed = written ? null : faultOf(body);
  const pieces = written
    ? [DATA, written, Buffer.from('}\n\n')]
    : [Buffer.from(eventOf(failed ? errorAlone(inDialect(failed, 'openai')) : body))];
  if (asksUsage) pieces.push(Buffer.from(eventOf({ ...base, usage: usageWithCost(settled, true) })));
  // Clients stop reading at an error.
  if (cut) pieces.push(Buffer.from(eventOf(errorAlone(toHttpError(cut, 'openai').body.error))));
  else pieces.push(Buffer.from(DONE));
  return Buffer.concat(pieces);
}

type OwnFault = Parameters<typeof inDialect>[0];

/** The error of a last chunk; null for one that did not fail. */
function faultOf({ error, choices }: Record<string, unknown>): OwnFault | null {
  if (error) return error as OwnFault;
  const isFailed = (choices as readonly Record<string, unknown>[]).some((one) => one['finish_reason'] === 'error');
  return isFailed ? MODEL_FAILED : null;
}

const CHUNK = 'chat.completion.chunk';
/** The model that answers: another than the called one after a fallback. */
const modelOf = ({ sent, model }: ReplyAbout): string => sent.service ?? model;
const createdAt = ({ startedAt }: ReplyAbout): number => Math.floor(startedAt / 1000);

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
/** Some clients recognise an error only by the first member of its event. */
const errorFirst = (error: unknown, event: Readonly<Record<string, unknown>>): object =>
  Object.assign({ error }, event, { error });

const DATA = Buffer.from('data: ');
const DONE = 'data: [DONE]\n\n';

/**
 * An error as OpenAI's API sends it in a stream. Clients that read chunks strictly, and know no `error` in them, would
 * take one with the other members of a chunk for a chunk, and the stream for a whole one.
 */
export const errorAlone = (error: unknown): object => ({ error, choices: [] });

/** The event that ends a failed stream. `[DONE]` does not follow, because the reply is not complete. */
function errorEvent(about: ReplyAbout, error: unknown, dialect: Dialect): Buffer {
  const { body } = toHttpError(toGatewayError(error), dialect);
  if (dialect === 'openai') return Buffer.from(eventOf(errorAlone(body.error)));
  const event = {
    id: about.id,
    object: CHUNK,
    created: createdAt(about),
    model: modelOf(about),
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
  };
  return Buffer.from(eventOf(errorFirst(body.error, event)));
}
