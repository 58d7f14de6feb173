import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A tool that the model asks its client for. */
export interface ToolUse {
  /** As the gateway lists it, without what the client puts before it. */
  readonly name: string;
  readonly arguments: object;
}

/** The next tool, from what those before answered as the client showed it to its model. */
export type Step = (results: readonly string[]) => ToolUse;

export interface ScriptedModel {
  /** Without a slash at its end. `/v1/messages` and `/v1/responses` are below it. */
  readonly url: string;
  /** What it asks for from now on, step by step. After the last step it says `RESULT<…>` with the last answer. */
  follow(...steps: readonly Step[]): void;
  /** Bodies of the requests since the last `follow`. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

interface Request {
  /** The client's own name for a tool, or null where the client shows its model no such tool. */
  nameOf(tool: string): object | null;
  readonly results: readonly string[];
  /** How often the client has looked a tool up. */
  readonly searches: number;
  readonly write: (response: ServerResponse, turn: McpRequest) => void;
}
type McpRequest =
  | { readonly text: string }
  | { readonly id: string; readonly tool: object; readonly arguments: object };

/**
 * A model for programs that bring their own loop of tools: it speaks Anthropic's Messages and OpenAI's Responses,
 * both as streams.
 */
export async function startScriptedModel(): Promise<ScriptedModel> {
  let steps: readonly Step[] = [];
  let asked: string[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => {
      const path = new URL(request.url!, 'http://model').pathname;
      const read = request.method === 'POST' ? WIRES[path] : undefined;
      if (read === undefined) {
        response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"not here"}}');
        return;
      }
      asked.push(text);
      const understood = read(JSON.parse(text) as Json);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      understood.write(response, nextTurn(steps, understood));
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get asked() {
      return asked;
    },
    follow(...next) {
      steps = next;
      asked = [];
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function nextTurn(steps: readonly Step[], { results, searches, nameOf }: Request): McpRequest {
  const step = steps[results.length];
  if (!step) return { text: `RESULT<${results.at(-1) ?? ''}>` };
  const { name, arguments: args } = step(results);
  const tool = nameOf(name);
  if (tool !== null) return { id: `call_${results.length}`, tool, arguments: args };
  // Claude Code shows its model most tools by name alone until it looks them up.
  const search = searches < SEARCHES_MAX ? nameOf(SEARCH) : null;
  if (search !== null)
    return { id: `${LOOKED_UP}${searches}`, tool: search, arguments: { query: `select:mcp__tollgate__${name}` } };
  return { text: `there is no tool ${name}` };
}

const SEARCH = 'ToolSearch';
const LOOKED_UP = 'search_';
/** A tool is not there before its server is connected, and never if that refuses. */
const SEARCHES_MAX = 50;
const USAGE = { input_tokens: 1, output_tokens: 1 };

interface Json {
  readonly tools?: readonly {
    readonly type?: string;
    readonly name?: string;
    readonly tools?: readonly { readonly name: string }[];
  }[];
  readonly messages?: readonly { readonly content: string | readonly Block[] }[];
  readonly input?: readonly {
    readonly type?: string;
    readonly call_id?: string;
    readonly output?: string | readonly Block[];
  }[];
}
interface Block {
  readonly type: string;
  readonly text?: string;
  readonly tool_use_id?: string;
  readonly content?: string | readonly Block[];
}

const WIRES: Readonly<Record<string, (body: Json) => Request>> = {
  '/v1/messages': readMessages,
  '/v1/responses': readResponses,
};
const textOf = (content: string | readonly Block[] = []): string =>
  typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join('');
const sender = (response: ServerResponse) => (event: { readonly type: string; readonly [more: string]: unknown }) =>
  void response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);

function readMessages(body: Json): Request {
  const blocks = (body.messages ?? []).flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  return {
    nameOf: (tool) => {
      const found = body.tools?.find(({ name }) => name === tool || name === `mcp__tollgate__${tool}`);
      return found ? { name: found.name } : null;
    },
    results: blocks
      .filter((block) => block.type === 'tool_result' && block.tool_use_id?.startsWith(LOOKED_UP) !== true)
      .map(({ content }) => textOf(content)),
    searches: blocks.filter((block) => block.tool_use_id?.startsWith(LOOKED_UP) === true).length,
    write(response, turn) {
      const send = sender(response);
      const [block, delta, reason] =
        'text' in turn
          ? [{ type: 'text', text: '' }, { type: 'text_delta', text: turn.text }, 'end_turn']
          : [
              { type: 'tool_use', id: turn.id, ...turn.tool, input: {} },
              { type: 'input_json_delta', partial_json: JSON.stringify(turn.arguments) },
              'tool_use',
            ];
      send({
        type: 'message_start',
        message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'scripted', content: [], usage: USAGE },
      });
      send({ type: 'content_block_start', index: 0, content_block: block });
      send({ type: 'content_block_delta', index: 0, delta });
      send({ type: 'content_block_stop', index: 0 });
      send({ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: USAGE });
      send({ type: 'message_stop' });
    },
  };
}

function readResponses(body: Json): Request {
  return {
    nameOf(tool) {
      // Codex has a namespace for each MCP server.
      const namespace = body.tools?.find(({ tools }) => tools?.some(({ name }) => name === tool));
      return namespace ? { name: tool, namespace: namespace.name } : null;
    },
    results: (body.input ?? [])
      .filter(({ type }) => type === 'function_call_output')
      .map(({ output }) => textOf(output)),
    searches: 0,
    write(response, turn) {
      const send = sender(response);
      const item =
        'text' in turn
          ? {
              type: 'message',
              id: 'msg_1',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: turn.text }],
            }
          : {
              type: 'function_call',
              id: 'fc_1',
              call_id: turn.id,
              ...turn.tool,
              arguments: JSON.stringify(turn.arguments),
            };
      send({ type: 'response.created', response: { id: 'resp_1' } });
      send({ type: 'response.output_item.added', output_index: 0, item });
      send({ type: 'response.output_item.done', output_index: 0, item });
      send({ type: 'response.completed', response: { id: 'resp_1', usage: { ...USAGE, total_tokens: 2 } } });
    },
  };
}
