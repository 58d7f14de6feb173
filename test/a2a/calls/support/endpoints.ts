import { expect } from 'vitest';
import type { CallsWorld } from './calls-world.ts';

/** What a client was told by the end of a call. Money in micro-USD. */
export interface Told {
  /** Id of the call. */
  readonly id: string;
  readonly said: string;
  /** What a client has that reads only the structured part of an answer; null at routes without one. */
  readonly structured: string | null;
  readonly taskId: string | null;
  readonly state: string;
  /** What it costs is known once its task has ended. */
  readonly costPending: boolean;
  /** null where nothing is told of it. */
  readonly cost: number | null;
  /** How the route says that it ended. */
  readonly finish: string;
  readonly error: string | null;
}

export interface A2aHandler {
  readonly name: string;
  /**
   * Asks an agent of this name and reads to the end of its answer. `heard` is told of what came so far, where it
   * comes in pieces. `taskId`: a task to go on with.
   */
  ask(calls: CallsWorld, service: string, heard?: (text: string) => void, taskId?: string): Promise<Told>;
}

interface ChatEnd {
  readonly choices: readonly {
    readonly delta?: { readonly content?: string };
    readonly message?: { readonly content: string };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly cost?: number };
  readonly tollgate?: {
    readonly state: string;
    readonly task_id: string | null;
    readonly cost_pending?: boolean;
    readonly note?: { readonly message: string; readonly type: string };
  };
  readonly error?: { readonly message: string; readonly type: string };
}

const microUsd = (usd: unknown) => Math.round(Number(usd) * 1e6);

const chat = (stream: boolean): A2aHandler => ({
  name: stream ? 'chat, streamed' : 'chat, whole',
  async ask({ world: { spine } }, service, heard = () => {}, taskId) {
    const tollgate = taskId === undefined ? {} : { tollgate: { task_id: taskId } };
    const body = { model: `a2a/${service}`, stream, messages: [{ role: 'user', content: 'work' }], ...tollgate };
    const response = await spine.post('/chat/completions', body);
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
      structured: null,
      taskId: last.tollgate!.task_id,
      state: last.tollgate!.state,
      costPending: last.tollgate!.cost_pending === true,
      cost: last.usage!.cost === undefined ? null : microUsd(last.usage!.cost),
      finish: last.choices[0]!.finish_reason!,
      error: error === null ? null : `${error.type}: ${error.message}`,
    };
  },
});

const mcp: A2aHandler = {
  name: 'MCP',
  async ask({ world: { spine } }, service, _heard, taskId) {
    const args = { message: 'work', ...(taskId === undefined ? {} : { task_id: taskId }) };
    const response = await fetch(`${spine.origin}/mcp/a2a/${service}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${spine.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'send_message', arguments: args },
      }),
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
        readonly structuredContent: {
          readonly answer: string;
          readonly task_id: string | null;
          readonly state: string;
          readonly cost_pending?: boolean;
        };
        /** Without a cost where the message is covered by the first of its task. */
        readonly _meta?: {
          readonly 'tollgate/generation'?: { readonly id: string; readonly cost?: string };
          readonly 'tollgate/finish'?: string;
        };
      };
    };
    const { id, cost } = result._meta?.['tollgate/generation'] ?? { id: '', cost: undefined };
    const said = result.content.map((part) => part.text).join('\n');
    expect(response.headers.get('x-cost-usd') ?? undefined).toBe(cost);
    const finish = result.isError ? 'error' : (result._meta?.['tollgate/finish'] ?? 'stop');
    const { answer: structured, task_id: task, state, cost_pending: costPending = false } = result.structuredContent;
    return {
      id,
      said,
      structured,
      taskId: task,
      state,
      costPending,
      cost: cost === undefined ? null : microUsd(cost),
      finish,
      error: finish === 'stop' ? null : said,
    };
  },
};

/** The ways to an agent that are no A2A: whoever asks there has no task to look at. */
export const [WHOLE_CHAT, STREAMED_CHAT, MCP] = [chat(false), chat(true), mcp] as const;
export const BRIDGES: readonly A2aHandler[] = [WHOLE_CHAT, STREAMED_CHAT, MCP];
