import { modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { startWireUpstream, type WireUpstream } from '../openai/native/support/wire-upstream.ts';
import type { Json } from './goldens.ts';

/** A chat wire: where its clients and its providers send requests. */
interface Wire {
  path(model: string, stream: boolean): string;
  /** The least request, in one piece. */
  readonly least: Json;
  /** Whether the address says if a reply is a stream. */
  readonly streamsByAddress?: true;
}

const HI = [{ role: 'user', content: 'Hi' }];
export const WIRES: Readonly<Record<string, Wire>> = {
  chat: { path: () => '/api/v1/chat/completions', least: { messages: HI } },
  completions: { path: () => '/api/v1/completions', least: { prompt: 'Hi' } },
  messages: { path: () => '/api/v1/messages', least: { max_tokens: 50, messages: HI } },
  responses: { path: () => '/api/v1/responses', least: { input: 'Hi', store: false } },
  gemini: {
    path: (model, stream) =>
      `/api/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    least: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    streamsByAddress: true,
  },
};

/** One that speaks only chat, one of these that lists a field, and one that speaks all wires. */
export const CHAT = 'acme/chat';
export const NATIVE = 'acme/native';

export interface World {
  readonly spine: Spine;
  readonly upstream: WireUpstream;
  /** Sends a request of a wire. */
  send(wire: string, model: string, request: Json, stream?: boolean): Promise<Response>;
  stop(): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const upstream = await startWireUpstream();
  const lines = 'input_modalities = ["text", "image", "audio", "file"]\noutput_modalities = ["text", "image"]';
  const at = { provider: 'Acme', url: upstream.url, lines };
  const spine = await startSpine({
    toml:
      UNHURRIED +
      modelBlock({ name: CHAT, ...at }) +
      modelBlock({ name: 'acme/listed', ...at, params: 'forward = ["reasoning"]' }) +
      modelBlock({ name: NATIVE, ...at, params: 'wires = ["messages", "responses", "gemini"]' }),
  });
  return {
    spine,
    upstream,
    send(wire, model, request, stream = false) {
      const { path, streamsByAddress } = WIRES[wire]!;
      const body = streamsByAddress ? request : { model, ...request, ...(stream ? { stream } : {}) };
      return fetch(spine.origin + path(model, stream), {
        method: 'POST',
        headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    },
    async stop() {
      await spine.stop();
      await upstream.stop();
    },
  };
}
