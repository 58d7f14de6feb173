import type { JsonObject } from '#wire';
import type { ServerHttp2Stream } from 'node:http2';
import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata, SharedV4Warning } from '@ai-sdk/provider';
import { RequestFault } from './fault.ts';
import { annotationOf, extraContent, imageOf, logprobsOf, reasoningDetail } from './members.ts';
import { servedTier, toChatUsage, toFinish } from './usage.ts';

interface WriterOptions {
  readonly stream: ServerHttp2Stream;
  readonly modelId: string;
  readonly warnings: readonly SharedV4Warning[];
  readonly logprobs: boolean;
}

/** A tool call whose input comes in pieces. */
interface OpenCall {
  readonly index: number;
  /** The vendor runs it itself, so the client gets nothing of it. */
  readonly hidden: boolean;
  sent: boolean;
}

/** Thinking that runs: its text is needed again if its vendor signs it at the end. */
interface Thought {
  text: string;
  metadata: SharedV4ProviderMetadata | undefined;
}

const HEAD = { ':status': 200, 'content-type': 'text/event-stream' };

/**
 * Writes the parts of one stream of the AI SDK as chunks of chat. The head leaves with the first part that says
 * something. An error before it is thrown, so that it has a status and another provider can be asked.
 */
export class ChunkWriter {
  readonly #stream: ServerHttp2Stream;
  /** All of a chunk before its delta: the same bytes in each, so the gateway need not parse texts. */
  readonly #before: string;
  readonly #warnings: SharedV4Warning[];
  readonly #logprobs: boolean;
  readonly #calls = new Map<string, OpenCall>();
  readonly #thoughts = new Map<string, Thought>();
  #signed = 0;
  #count = 0;
  #finished = false;

  constructor({ stream, modelId, warnings, logprobs }: WriterOptions) {
    this.#stream = stream;
    this.#warnings = [...warnings];
    this.#logprobs = logprobs;
    const id = `chatcmpl-${Date.now().toString(36)}`;
    const shared = { id, object: 'chat.completion.chunk', created: Math.floor(Date.now() / 1000), model: modelId };
    this.#before = `data: ${JSON.stringify(shared).slice(0, -1)},"choices":[{"index":0,"delta":`;
  }

  /** Resolves when the reply is written, or its reader is gone. Rejects with an error of the parts. */
  async writeAll(parts: ReadableStream<LanguageModelV4StreamPart>): Promise<void> {
    const reader = parts.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#stream.destroyed) break;
        this.#take(value);
        if (this.#stream.writableNeedDrain) await this.#drained();
      }
    } finally {
      if (this.#stream.destroyed) reader.cancel().catch(() => {});
      reader.releaseLock();
    }
    if (this.#stream.destroyed) return;
    // Without a finish the reply is broken, and the gateway treats an end without [DONE] so.
    if (!this.#finished && !this.#stream.headersSent) throw new RequestFault('the reply is empty', { status: 502 });
    this.#stream.end(this.#finished ? 'data: [DONE]\n\n' : undefined);
  }

  #drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = () => {
      this.#stream.off('drain', done);
      this.#stream.off('close', done);
      resolve();
    };
    this.#stream.on('drain', done);
    this.#stream.on('close', done);
    return promise;
  }

  #take(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case 'text-delta':
        return this.#text('content', part.delta);
      case 'reasoning-start':
        return void this.#thoughts.set(part.id, { text: '', metadata: part.providerMetadata });
      case 'reasoning-delta':
        return this.#think(part.id, part.delta, part.providerMetadata);
      case 'reasoning-end':
        return this.#endThought(part.id, part.providerMetadata);
      case 'tool-input-start':
        return this.#openCall(part.id, part.toolName, '', part);
      case 'tool-input-delta':
        return this.#callDelta(part.id, { function: { arguments: part.delta } }, part.delta !== '');
      case 'tool-call':
        return this.#endCall(part);
      case 'file':
        return this.#list('images', imageOf(part));
      case 'source':
        return this.#list('annotations', annotationOf(part));
      case 'stream-start':
        return void this.#warnings.push(...part.warnings);
      case 'finish':
        return this.#finish(part);
      case 'error':
        throw part.error;
      default:
    }
  }

  /** Text is by far the most frequent part. */
  #text(member: 'content' | 'reasoning', text: string): void {
    if (text !== '') this.#write(`{"${member}":${JSON.stringify(text)}},"finish_reason":null}]}\n\n`);
  }

  #delta(delta: JsonObject): void {
    this.#write(`${JSON.stringify(delta)},"finish_reason":null}]}\n\n`);
  }

  #list(member: string, list: readonly JsonObject[]): void {
    if (list.length > 0) this.#delta({ [member]: list });
  }

  #write(rest: string): void {
    if (!this.#stream.headersSent) this.#stream.respond(HEAD);
    this.#stream.write(this.#before + rest);
  }

  #think(id: string, delta: string, metadata: SharedV4ProviderMetadata | undefined): void {
    const thought = this.#thoughts.get(id);
    if (thought !== undefined) {
      thought.text += delta;
      // Anthropic's signature comes with a delta that has no text.
      thought.metadata = metadata ?? thought.metadata;
    }
    this.#text('reasoning', delta);
  }

  #endThought(id: string, metadata: SharedV4ProviderMetadata | undefined): void {
    const thought = this.#thoughts.get(id);
    this.#thoughts.delete(id);
    const all = metadata ?? thought?.metadata;
    if (all !== undefined)
      this.#delta({ reasoning_details: [reasoningDetail(this.#signed++, thought?.text ?? '', all)] });
  }

  #openCall(
    id: string,
    name: string,
    input: string,
    details: { readonly providerExecuted?: boolean; readonly providerMetadata?: SharedV4ProviderMetadata },
  ): void {
    const hidden = details.providerExecuted === true;
    const call: OpenCall = { index: hidden ? -1 : this.#count++, hidden, sent: input !== '' };
    this.#calls.set(id, call);
    const begun = {
      id,
      type: 'function',
      function: { name, arguments: input },
      ...extraContent(details.providerMetadata),
    };
    if (!hidden) this.#delta({ tool_calls: [{ index: call.index, ...begun }] });
  }

  #callDelta(id: string, delta: JsonObject, hasInput: boolean): void {
    const call = this.#calls.get(id);
    if (call === undefined || call.hidden) return;
    call.sent ||= hasInput;
    this.#delta({ tool_calls: [{ index: call.index, ...delta }] });
  }

  /** A call is repeated whole at its end. What was streamed is not said twice, but its metadata may come only now. */
  #endCall(part: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): void {
    const { toolCallId: id, toolName, input, providerMetadata } = part;
    const call = this.#calls.get(id);
    if (call === undefined) return this.#openCall(id, toolName, input, part);
    if (!call.sent && input !== '') this.#callDelta(id, { function: { arguments: input } }, true);
    if (providerMetadata !== undefined) this.#callDelta(id, extraContent(providerMetadata), false);
  }

  #finish({ finishReason, usage, providerMetadata }: Extract<LanguageModelV4StreamPart, { type: 'finish' }>): void {
    this.#finished = true;
    const end = toFinish(finishReason);
    if (end.finish_reason === 'error') throw new RequestFault('the model ended with an error', { status: 502 });
    const probabilities = this.#logprobs ? logprobsOf(providerMetadata) : [];
    const choice = {
      ...end,
      ...(probabilities.length === 0 ? {} : { logprobs: { content: probabilities, refusal: null } }),
    };
    const claim = toChatUsage(usage);
    const beside = {
      ...servedTier(providerMetadata),
      ...(claim === null ? {} : { usage: claim }),
      ...(this.#warnings.length === 0 ? {} : { warnings: this.#warnings }),
    };
    const members = JSON.stringify(beside).slice(1);
    this.#write(`{},${JSON.stringify(choice).slice(1)}]${members === '}' ? '}' : `,${members}`}\n\n`);
  }
}
