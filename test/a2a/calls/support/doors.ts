import { expect } from 'vitest';
import type { CallsWorld } from './calls-world.ts';

/** What a client was told by the end of a call. Money in micro-USD. */
export interface Told {
  /** Id of the call. */
  readonly id: string;
  readonly said: string;
  readonly state: string;
  readonly cost: number;
  /** How the door says that it ended. */
  readonly finish: string;
  readonly error: string | null;
}

export interface Door {
  readonly name: string;
  /** Asks an agent of this name and reads to the end of its answer. `heard` is told of what came so far, where it comes in pieces. */
  ask(calls: CallsWorld, service: string, heard?: (text: string) => void): Promise<Told>;
}

interface ChatEnd {
  readonly choices: readonly {
    readonly delta?: { readonly content?: string };
    readonly message?: { readonly content: string };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly cost: number };
  readonly tollgate?: { readonly state: string; readonly note?: { readonly message: string; readonly type: string } };
  readonly error?: { readonly message: string; readonly type: string };
}

const microUsd = (usd: unknown) => Math.round(Number(usd) * 1e6);

const chat = (stream: boolean): Door => ({
  name: stream ? 'chat, streamed' : 'chat, whole',
  async ask({ world: { spine } }, service, heard = () => {}) {
    const response = await spine.post('/chat/completions', { model: `a2a/${service}`, stream, messages: [{ role: 'user', content: 'work' }] });
    let text = '';
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) heard((text += piece));
    const lines = stream
      ? text
          .split('\n')
          .filter((line) => line.startsWith('data: {'))
          .map((line) => line.slice(6))
      : [text];
    const chunks = lines.map((line) => JSON.parse(line) as ChatEnd);
    const last = chunks.findLast(({ usage }) => usage)!;
    const error = chunks.findLast((chunk) => chunk.error)?.error ?? last.tollgate?.note ?? null;
    return {
      id: response.headers.get('x-generation-id')!,
      said: chunks.map(({ choices }) => choices[0]?.delta?.content ?? choices[0]?.message?.content ?? '').join(''),
      state: last.tollgate!.state,
      cost: microUsd(last.usage!.cost),
      finish: last.choices[0]!.finish_reason!,
      error: error === null ? null : `${error.type}: ${error.message}`,
    };
  },
});

const mcp: Door = {
  name: 'MCP',
  async ask({ world: { spine } }, service) {
    const response = await fetch(`${spine.origin}/mcp/a2a/${service}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'send_message', arguments: { message: 'work' } } }),
    });
    const text = await response.text();
    const { result } = JSON.parse(
      text.startsWith('{')
        ? text
        : text
            .split('\n')
            .findLast((line) => line.startsWith('data: '))!
            .slice(6),
    ) as {
      readonly result: {
        readonly content: readonly { readonly text: string }[];
        readonly isError?: boolean;
        readonly structuredContent: { readonly state: string };
        readonly _meta: { readonly 'tollgate/generation': { readonly id: string; readonly cost: string }; readonly 'tollgate/finish'?: string };
      };
    };
    const { id, cost } = result._meta['tollgate/generation'];
    const said = result.content.map((part) => part.text).join('');
    expect(response.headers.get('x-cost-usd') ?? cost).toBe(cost);
    const finish = result.isError ? 'error' : (result._meta['tollgate/finish'] ?? 'stop');
    return { id, said, state: result.structuredContent.state, cost: microUsd(cost), finish, error: finish === 'stop' ? null : said };
  },
};

/** The ways to an agent that are no A2A: whoever asks there has no task to look at. */
export const [WHOLE_CHAT, STREAMED_CHAT, MCP] = [chat(false), chat(true), mcp] as const;
export const BRIDGES: readonly Door[] = [WHOLE_CHAT, STREAMED_CHAT, MCP];
