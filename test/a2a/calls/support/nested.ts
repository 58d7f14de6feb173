import { callTool } from '../../../mcp/calls/modern-post.ts';
import type { RawExchange } from '../../../support/a2a-agent/index.ts';
import { ask, type Spine } from '../../../support/spine.ts';

/** What an agent is given to call in its turn. */
export interface Gift {
  readonly token: string;
  readonly url?: string;
  readonly budget_usd: string;
}

/** The run of a request as its agent finds it, in the header and in the metadata; undefined where there is none. */
export function giftOf({ request }: Pick<RawExchange, 'request'>): {
  readonly header: string | undefined;
  readonly metadata: Gift | undefined;
} {
  const { message } = request.params as {
    readonly message?: { readonly metadata?: Readonly<Record<string, unknown>> };
  };
  return {
    header: request.headers['tollgate-run'] as string | undefined,
    metadata: message?.metadata?.['tollgate/run'] as Gift | undefined,
  };
}

export interface Outcome {
  readonly status: number;
  readonly text: string;
  readonly generation: string | null;
}

/** The three kinds of call that an agent may make with its token. */
export function asAgent(spine: Pick<Spine, 'origin' | 'key' | 'post'>, token: string) {
  const authorization = `Bearer ${token}`;
  return {
    async chat(content = 'hi', more: object = {}, headers: Readonly<Record<string, string>> = {}): Promise<Outcome> {
      const response = await spine.post('/chat/completions', ask(content, more), { authorization, ...headers });
      return {
        status: response.status,
        text: await response.text(),
        generation: response.headers.get('x-generation-id'),
      };
    },
    async tool(service: string, name = 'add', meta: Readonly<Record<string, unknown>> = {}): Promise<Outcome> {
      const { status, text } = await callTool(spine, service, name, {}, { key: token, meta });
      return { status, text, generation: null };
    },
    async agent(service: string, text: string, more: object = {}): Promise<Outcome> {
      const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] };
      const response = await fetch(`${spine.origin}/a2a/${service}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json', 'a2a-version': '1.0' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, ...more } }),
      });
      return { status: response.status, text: await response.text(), generation: null };
    },
  };
}
