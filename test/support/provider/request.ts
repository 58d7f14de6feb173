import { parseCommands } from './behaviour.ts';
import type { Instruction } from './behaviour.ts';

/** The members of a chat request that the test provider uses. The log's `body` has all of them. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly texts: readonly string[]; readonly images: number }[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly n: number;
  readonly maxTokens: number | null;
  /** Names of the tools to call. */
  readonly toolCalls: readonly string[];
  /** The JSON text of the tools, from which prompt tokens are counted. */
  readonly toolsText: string;
}

/** Reads a request body. Returns null if it isn't a chat request. */
export function readChatRequest(body: unknown): ChatRequest | null {
  if (!isRecord(body) || typeof body['model'] !== 'string' || !Array.isArray(body['messages'])) return null;
  const messages = body['messages'].filter(isRecord).map((message) => {
    const content = message['content'];
    const parts = Array.isArray(content) ? content.filter(isRecord) : [];
    return {
      role: String(message['role']),
      texts:
        typeof content === 'string'
          ? [content]
          : parts.flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : [])),
      images: parts.filter((part) => part['type'] === 'image_url').length,
    };
  });
  const options = body['stream_options'];
  const limit = body['max_completion_tokens'] ?? body['max_tokens'];
  const tools = Array.isArray(body['tools']) ? body['tools'].filter(isRecord) : [];
  const lastText = messages.findLast((message) => message.role === 'user')?.texts.join(' ') ?? '';
  return {
    model: body['model'],
    messages,
    stream: body['stream'] === true,
    includeUsage: isRecord(options) && options['include_usage'] === true,
    n: typeof body['n'] === 'number' ? body['n'] : 1,
    maxTokens: typeof limit === 'number' ? limit : null,
    toolCalls: toolsToCall(tools.map(toolName), body['tool_choice'], lastText),
    toolsText: tools.length === 0 ? '' : JSON.stringify(tools),
  };
}

/** The commands in the model's name and in the last user message. The message overrides the name. */
export function commandsOf(request: ChatRequest): Instruction {
  const mark = request.model.indexOf('!');
  const fromModel = mark === -1 ? {} : parseCommands(request.model.slice(mark));
  const last = request.messages.findLast((message) => message.role === 'user');
  const words = last?.texts.flatMap((text) => text.split(/\s+/)).filter((word) => /^![a-z]/.test(word)) ?? [];
  return { ...fromModel, ...parseCommands(words.join(' ')) };
}

/** The forced tools, or the tools whose names occur in the last user message. */
function toolsToCall(names: readonly string[], choice: unknown, text: string): readonly string[] {
  if (choice === 'none') return [];
  if (isRecord(choice) && isRecord(choice['function'])) return [String(choice['function']['name'])];
  const named = names.filter((name) => text.includes(name));
  return named.length === 0 && choice === 'required' ? names.slice(0, 1) : named;
}

function toolName(tool: Readonly<Record<string, unknown>>): string {
  return isRecord(tool['function']) ? String(tool['function']['name']) : '';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
